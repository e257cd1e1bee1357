//! A fixed message, written by hand, and its content. This test never writes either file.

use model::{Trace, TraceId};
use otlp::{append, encode};

const HEX: &str = include_str!("../golden/checkout.hex");
const SAYS: &str = include_str!("../golden/checkout.txt");

#[test]
fn a_fixed_message_says_what_it_always_said() {
    let trace = read();
    let said: String = trace
        .spans()
        .map(|span| {
            let (resource, scope) = (span.resource().to_data(), span.scope().to_data());
            format!("{resource:?}\n{scope:?}\n{:?}\n\n", span.to_data())
        })
        .collect();
    assert_eq!(said, SAYS);
}

#[test]
fn it_is_written_as_it_always_was() {
    assert_eq!(encode(&read()), bytes());
}

fn read() -> Trace {
    let id: TraceId = "0af7651916cd43dd8448eb211c80319c".parse().expect("an id");
    let mut trace = Trace::new(id);
    assert_eq!(append(&mut trace, &bytes()), Ok(2));
    trace
}

fn bytes() -> Vec<u8> {
    let digits: Vec<_> = HEX.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("two digits")).collect()
}
