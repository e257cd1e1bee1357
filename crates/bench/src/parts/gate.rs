//! A proxy to Postgres that holds back one statement, or its response, until it is released.
//!
//! A test can stop a server at one exact point: before the database has executed a write, or after.

use std::sync::Arc;

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};

use super::Database;

/// The message that is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The statement: Postgres does not receive it.
    Statement,
    /// Its response: Postgres has executed the statement.
    Answer,
}

/// The state of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateState {
    Open,
    Holding,
    Released,
}

/// A proxy to Postgres, until it is dropped.
#[derive(Debug)]
pub struct Gate {
    /// The port to connect to.
    pub port: u16,
    state: watch::Sender<GateState>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct GateRule {
    words: &'static str,
    hold: Hold,
    state: watch::Sender<GateState>,
}

impl Gate {
    /// Starts a proxy to the database's server that holds back the first statement that contains these words.
    pub async fn start(database: &Database, words: &'static str, hold: Hold) -> Result<Self> {
        let address = database.address()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (state, _) = watch::channel(GateState::Open);
        let rule = GateRule { words, hold, state: state.clone() };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut ways = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (rule, address) = (rule.clone(), address.clone());
                ways.spawn(async move {
                    if let Ok(server) = TcpStream::connect(address).await {
                        carry(client, server, rule).await;
                    }
                });
            }
        });
        Ok(Self { port, state, _tasks: tasks })
    }

    /// Waits until the statement, or its response, is held back.
    pub async fn held(&self) {
        reached(&self.state, GateState::Holding).await;
    }

    /// Releases it.
    pub fn release(&self) {
        self.state.send_replace(GateState::Released);
    }
}

async fn carry(client: TcpStream, server: TcpStream, rule: GateRule) {
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    let held = Arc::new(watch::channel(false).0);
    let (asking, answering) = (rule.clone(), rule);
    let (sender, receiver) = (Arc::clone(&held), held.subscribe());
    tokio::select! {
        () = ask(from_client, to_server, asking, sender) => {}
        () = tell(from_server, to_client, answering, receiver) => {}
    }
}

/// Forwards statements. One message prepares a statement by its words, and the next message executes it.
async fn ask(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    rule: GateRule,
    answers: Arc<watch::Sender<bool>>,
) {
    let (mut buffer, mut is_prepared) = (vec![0; 1 << 16], false);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let chunk = &buffer[..count];
        if is_prepared && *rule.state.borrow() == GateState::Open {
            match rule.hold {
                Hold::Statement => {
                    rule.state.send_replace(GateState::Holding);
                    reached(&rule.state, GateState::Released).await;
                }
                // Reported as held when the response arrives.
                Hold::Answer => drop(answers.send_replace(true)),
            }
        }
        let words = rule.words.as_bytes();
        is_prepared = chunk.windows(words.len()).any(|window| window == words);
        if to.write_all(chunk).await.is_err() {
            return;
        }
    }
}

/// Forwards responses.
async fn tell(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    rule: GateRule,
    is_held: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if *is_held.borrow() && *rule.state.borrow() != GateState::Released {
            rule.state.send_replace(GateState::Holding);
            reached(&rule.state, GateState::Released).await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits until the gate reaches a state. The sender exists, so that there is no error.
async fn reached(state: &watch::Sender<GateState>, wanted: GateState) {
    let mut states = state.subscribe();
    drop(states.wait_for(|state| *state == wanted).await);
}
