-- The kinds of documents have the names that documents, the API and the command line have.

alter table documents drop constraint documents_kind_check;
alter table document_versions
    drop constraint document_versions_project_kind_document_id_fkey,
    drop constraint document_versions_check1;

update documents set kind = 'testSuite' where kind = 'suite';
update documents set kind = 'traceStore' where kind = 'store';
update documents set kind = 'qualityGate' where kind = 'gate';
update document_versions set kind = 'testSuite' where kind = 'suite';
update document_versions set kind = 'traceStore' where kind = 'store';
update document_versions set kind = 'qualityGate' where kind = 'gate';

alter table documents
    add check (kind in ('testSuite', 'variableSet', 'traceStore', 'settleProfile', 'analyzer', 'qualityGate'));
alter table document_versions
    add foreign key (project, kind, document_id) references documents (project, kind, id),
    add check ((sealed is not null) = (kind in ('variableSet', 'traceStore')));
