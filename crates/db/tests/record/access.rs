//! Tokens and the audit log.

use db::{NewAudit, NewToken, PersonId, SessionPage, TokenKind};
use model::{Role, TokenId};
use sqlx::Row;

use crate::scratch::{self, at};

fn person() -> PersonId {
    PersonId { issuer: "https://id".to_owned(), subject: "7".to_owned() }
}

fn token(number: u8, kind: TokenKind) -> NewToken {
    NewToken {
        id: TokenId::new(at(number.into()), [number; 10]),
        kind,
        hash: [number; 32],
        name: format!("token {number}"),
        role: Role::Editor,
        projects: Some(vec!["a".parse().expect("a project"), "b".parse().expect("a project")]),
        made_at: at(1),
        made_by: "me".to_owned(),
        expires_at: at(100),
        person: (kind == TokenKind::Session).then(person),
        address: Some("10.0.0.7".parse().expect("an address")),
    }
}

#[test]
fn a_token_is_found_by_its_hash_while_it_is_good() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        for number in 1..=3 {
            db.create_token(&token(number, TokenKind::Token)).await.expect("kept");
        }
        db.create_token(&token(4, TokenKind::Session)).await.expect("kept");
        let find = async |number, kind, secs| {
            db.token(kind, &[number; 32], at(secs)).await.expect("asked")
        };
        let found = find(1, TokenKind::Token, 99).await.expect("it is good");
        let made = token(1, TokenKind::Token);
        assert_eq!((found.id, found.role, found.projects), (made.id, made.role, made.projects));
        assert_eq!((found.made_at, found.expires_at), (at(1), at(100)));
        assert_eq!(find(1, TokenKind::Token, 100).await, None, "expired");
        assert_eq!(find(1, TokenKind::Session, 2).await, None, "of another kind");
        assert_eq!(find(4, TokenKind::Token, 2).await, None, "of another kind");
        assert_eq!(find(9, TokenKind::Token, 2).await, None, "of nobody");
        assert_eq!(found.person, None, "a program is nobody");
        let session = find(4, TokenKind::Session, 2).await.expect("it is good");
        assert_eq!(session.person, Some(person()));
        assert!(db.revoke_token(made.id, at(5)).await.expect("asked"));
        assert!(db.revoke_token(made.id, at(6)).await.expect("asked"), "once more");
        assert_eq!(find(1, TokenKind::Token, 7).await, None, "taken back");
        let nobody = TokenId::new(at(50), [9; 10]);
        assert!(!db.revoke_token(nobody, at(5)).await.expect("asked"));
        let names =
            |page: Vec<db::StoredToken>| page.into_iter().map(|it| it.name).collect::<Vec<_>>();
        let page = db.tokens(None, 2).await.expect("listed");
        let last = page.last().expect("a full page").id;
        assert_eq!(names(page), ["token 3", "token 2"], "sessions are nobody's business");
        let page = db.tokens(Some(last), 2).await.expect("listed");
        assert_eq!(page[0].revoked_at, Some(at(5)), "the first time counts");
        assert_eq!(names(page), ["token 1"]);
        let again = db.create_token(&NewToken { id: nobody, ..token(1, TokenKind::Token) }).await;
        assert!(again.is_err(), "a hash is one token's");
    });
}

#[test]
fn sessions_are_listed_and_ended_by_whose_they_are() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let other = PersonId { subject: "8".to_owned(), ..person() };
        db.create_token(&token(1, TokenKind::Token)).await.expect("kept");
        for number in 2..=5 {
            let mut session = token(number, TokenKind::Session);
            session.person = Some(if number < 5 { person() } else { other.clone() });
            db.create_token(&session).await.expect("kept");
        }
        let since = TokenId::new(at(2), [0; 10]);
        let page = |before, limit| SessionPage { before, since, now: at(50), limit };
        let id = |number| token(number, TokenKind::Session).id;
        let ids = |page: Vec<db::StoredToken>| page.iter().map(|it| it.id).collect::<Vec<_>>();
        let all = async |page| ids(db.sessions(page).await.expect("listed"));
        let own = async |page| ids(db.sessions_of(&person(), page).await.expect("listed"));
        assert_eq!(all(page(None, 10)).await, [5, 4, 3, 2].map(id));
        assert_eq!(own(page(None, 10)).await, [4, 3, 2].map(id));
        assert_eq!(own(page(Some(id(4)), 1)).await, [id(3)]);
        let young = SessionPage { since: TokenId::new(at(4), [0; 10]), ..page(None, 10) };
        assert_eq!(all(young).await, [5, 4].map(id), "older ones have expired");
        assert_eq!(all(SessionPage { now: at(100), ..page(None, 10) }).await, [], "expired");
        db.session_seen(id(4), at(20)).await.expect("noted");
        db.session_seen(id(4), at(19)).await.expect("noted");
        let seen = db.sessions(page(None, 2)).await.expect("listed");
        assert_eq!((seen[0].seen_at, seen[1].seen_at), (None, Some(at(20))));
        assert_eq!(seen[1].address, Some("10.0.0.7".parse().expect("an address")));
        let me = person();
        let end = async |number, of| db.end_session(id(number), of, at(9)).await.expect("asked");
        assert!(!end(5, Some(&me)).await, "of another person");
        assert!(end(4, Some(&me)).await && end(5, None).await);
        assert!(!end(1, None).await, "a token is no session");
        assert_eq!(all(page(None, 10)).await, [3, 2].map(id));
        assert_eq!(db.token(TokenKind::Session, &[4; 32], at(10)).await.expect("asked"), None);
    });
}

#[test]
fn a_change_is_noted_before_and_answered_after() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let change = |secs: u64| NewAudit {
            at: at(secs),
            who: "ann".to_owned(),
            person: Some(person()),
            address: Some("2001:db8::1".parse().expect("an address")),
            token: Some(TokenId::new(at(1), [1; 10])),
            method: "PUT".to_owned(),
            route: "/api/v1/tests".to_owned(),
            path: "/api/v1/tests".to_owned(),
            project: None,
            reason: Some("no role".to_owned()),
        };
        let first = db.audit(&change(1)).await.expect("noted");
        let second = db.audit(&change(2)).await.expect("noted");
        db.audit_answered(second, 200).await.expect("noted");
        let all = db.audits(None, 10).await.expect("listed");
        let told: Vec<_> = all.iter().map(|it| (it.n, it.status)).collect();
        assert_eq!(told, [(second, Some(200)), (first, None)]);
        assert_eq!(all[0].change, change(2));
        assert_eq!(db.audits(Some(second), 10).await.expect("listed").len(), 1);
        assert_eq!(db.prune_audit(at(2)).await.expect("pruned"), 1);
        assert_eq!(db.audits(None, 10).await.expect("listed").len(), 1);
    });
}

/// The migration runs on a database that has runs in it.
#[test]
fn the_tables_come_to_a_record_with_rows() {
    scratch::with(|scratch| async move {
        scratch.apply("a document").await;
        scratch.accept(1).await;
        let mut raw = scratch.raw().await;
        for undo in [
            "drop table tokens",
            "drop table audit",
            "delete from _sqlx_migrations where version in (5, 11, 14, 15)",
        ] {
            sqlx::query(undo).execute(&mut raw).await.expect("undone");
        }
        scratch.db.migrate().await.expect("migrated again");
        scratch.db.create_token(&token(1, TokenKind::Token)).await.expect("kept");
        let runs = sqlx::query("select count(*) from runs").fetch_one(&mut raw).await;
        assert_eq!(runs.expect("counted").get::<i64, _>(0), 1);
    });
}
