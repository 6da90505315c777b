//! The hash of names: MD4 with rounds of eight steps instead of sixteen ("half MD4"), begun with a random number of the file
//! system. It says where the search for a directory's room begins, and in which leaf of a large directory a name lies.
//!
//! MD4's functions and constants are those of RFC 1320. Which words a round takes was checked by the places of thirty
//! directories on Linux 6.12.

/// What `mkfs` draws at random. This is the number of the reference images (66666666-7777-8888-9999-aaaaaaaaaaaa).
const SEED: [u32; 4] = [0x6666_6666, 0x8888_7777, 0xaaaa_9999, 0xaaaa_aaaa];
/// Letters that go into one turn, and the words they make.
const LETTERS: usize = 32;
const WORDS: usize = LETTERS / 4;

type Mix = fn(u32, u32, u32) -> u32;

/// Of each round: its function, its constant, the order of the words, by how much a step turns.
const ROUNDS: [(Mix, u32, [usize; WORDS], [u32; 4]); 3] = [
    (|x, y, z| (x & y) | (!x & z), 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
    (|x, y, z| (x & y) | (x & z) | (y & z), 0x5a82_7999, [1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13]),
    (|x, y, z| x ^ y ^ z, 0x6ed9_eba1, [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]),
];

/// The hash of a name. Its last bit is not used.
pub(super) fn of(name: &str) -> u32 {
    let mut state = SEED;
    let mut rest = name.as_bytes();
    loop {
        turn(&mut state, &words(rest));
        rest = rest.get(LETTERS..).unwrap_or_default();
        if rest.is_empty() {
            return state[1] & !1;
        }
    }
}

/// The next letters as words, first letter highest. What is missing is made of the number of letters left.
fn words(letters: &[u8]) -> [u32; WORDS] {
    let length = u32::from(u8::try_from(letters.len()).unwrap_or(u8::MAX));
    let filler = length * 0x0101_0101;
    let mut words = [filler; WORDS];
    for (word, part) in words.iter_mut().zip(letters.chunks(4)) {
        *word = part.iter().fold(filler, |word, letter| (word << 8).wrapping_add((*letter).into()));
    }
    words
}

fn turn(state: &mut [u32; 4], words: &[u32; WORDS]) {
    let [mut a, mut b, mut c, mut d] = *state;
    for (mix, constant, order, turns) in ROUNDS {
        for (step, word) in order.into_iter().enumerate() {
            let sum = a.wrapping_add(mix(b, c, d)).wrapping_add(words[word]);
            let next = sum.wrapping_add(constant).rotate_left(turns[step % 4]);
            (a, d, c, b) = (d, c, b, next);
        }
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flex groups of thirty-two in which Linux 6.12 begins to look for these directories of a reference image. 0 and 16
    /// have less room than others: there it takes the next one.
    #[test]
    fn names_hash_as_the_kernels() {
        let flex = |name: &str| of(name) % 32;
        let made: Vec<u32> = (0..10).map(|n| flex(&format!("m0_{n}"))).collect();
        assert_eq!(made, [0, 30, 16, 6, 20, 10, 14, 18, 24, 30]);
        let others = ["tree", "fm", "repo", "pm", "clients", "d0", "d1", "d2", "d3"].map(flex);
        assert_eq!(others, [18, 12, 4, 24, 24, 14, 16, 0, 2]);
    }
}
