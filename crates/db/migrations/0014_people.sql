-- Who a person is, beside what they are called: the issuer of their identity, and its word for them. A name can change, and two
-- people can have the same. Null for programs.
alter table tokens
    add column issuer text,
    add column subject text;

-- Who asked, from which address, and why a login failed.
alter table audit
    add column issuer text,
    add column subject text,
    add column address text,
    add column reason text;
