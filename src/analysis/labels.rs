//! What a head does, read from its weights: a label and the scores it rests on.

use super::rows::nats;
use crate::config::MASK_FILL;
use crate::error::{AttnError, Result};
use crate::given::words;
use crate::mask::{Mask, MaskSize, ResolvedMask};
use crate::plain::Plain;
use crate::tensor::Tensor;

/// What the rows of a head have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum HeadPattern {
    /// They attend to the token before.
    PreviousToken,
    /// They attend to the token after.
    NextToken,
    /// They attend to the first token.
    FirstToken,
    /// Each attends to its own token.
    Diagonal,
    /// They attend to other tokens of the same id.
    SameToken,
    /// They attend to all tokens alike.
    Uniform,
    /// None of these.
    Mixed,
}

words!(HeadPattern: PreviousToken, NextToken, FirstToken, Diagonal, SameToken, Uniform, Mixed);

/// A number for each pattern; null where no row could show it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PatternScores {
    /// j = i - 1
    pub previous_token: Option<f32>,
    /// j = i + 1
    pub next_token: Option<f32>,
    /// j = 0, in the rows after it
    pub first_token: Option<f32>,
    /// j = i
    pub diagonal: Option<f32>,
    /// the keys of the query's own id other than itself
    pub same_token: Option<f32>,
    /// the entropy relative to the most possible
    pub uniform: Option<f32>,
}

/// What a head does.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeadLabel {
    /// The pattern, "mixed" where none is clear.
    pub label: HeadPattern,
    /// The label's own score, from 0 to 1; null for "mixed".
    pub score: Option<f32>,
    /// The score of every pattern.
    pub scores: PatternScores,
    /// What the same rows would score if they spread their weight evenly.
    pub chance: PatternScores,
}

impl From<PatternScores> for Plain {
    fn from(scores: PatternScores) -> Self {
        Self::Object(vec![
            ("previous_token", scores.previous_token.into()),
            ("next_token", scores.next_token.into()),
            ("first_token", scores.first_token.into()),
            ("diagonal", scores.diagonal.into()),
            ("same_token", scores.same_token.into()),
            ("uniform", scores.uniform.into()),
        ])
    }
}

impl From<HeadLabel> for Plain {
    fn from(head: HeadLabel) -> Self {
        Self::Object(vec![
            ("label", head.label.into()),
            ("score", head.score.into()),
            ("scores", head.scores.into()),
            ("chance", head.chance.into()),
        ])
    }
}

/// From here on a head is uniform: its rows have 98 % of the entropy they could have.
const UNIFORM: f64 = 0.98;
/// How far from chance to certainty a pattern must be.
const HALFWAY: f64 = 0.5;
/// How many standard deviations beyond chance a pattern must be.
const DEVIATIONS: f64 = 3.0;
/// One row makes no pattern.
const FEWEST_ROWS: usize = 2;

/// Labels each head of weights `[heads, n_q, n_k]` or `[batch, heads, n_q, n_k]`; the rows of a batch are taken
/// together, so there is one label a head. Query i stands at position i + `offset` among the keys, for the mask too.
///
/// **Rows.** Each row is divided by what it gives to its allowed keys. A row says nothing, and is left out, where it
/// has fewer than two allowed keys, or gives them nothing or NaN. Which keys are allowed is said by `mask`, where a
/// bias of -1e9 or less hides; without one, weights that hold nothing after the queries' own positions are read as
/// causal, and any others as unmasked.
///
/// **Scores.** A pattern's score is the mean weight on its keys: j = i - 1, i + 1, 0 (for i > 0), i, or the other keys
/// whose id in `tokens` is the query's. Rows that have no such key, or no other, are left out. `tokens` holds an id for
/// each key, `n_k` of them or `batch` times `n_k`. The score of "uniform" is the mean of H / ln m, with H the row's
/// entropy over its m allowed keys.
///
/// **Chance** is what the same rows would score if they were uniform: the mean of t / m, for t of m allowed keys.
///
/// **Label.** A pattern is clear where it rests on at least two rows and its score is both
/// - at least halfway from chance to certainty, (score - chance) / (1 - chance) >= 0.5, which in long sentences is the
///   half of all attention that Clark et al. ask for, and
/// - at least three standard deviations above the mean of as many rows drawn from all distributions alike, by which a
///   row of m keys gives t of them t / m with variance t (m - t) / (m² (m + 1)). Short sentences pass this only when
///   nearly perfect.
///
/// Of several clear patterns the label is the one farthest from chance to certainty. Without any, a head of at least
/// two rows whose uniform score is at least 0.98 is "uniform", and any other is "mixed". A label describes the weights
/// given; it takes more sentences, such as a batch of them, to say that a head always does so.
///
/// Sources: positional heads in "Analyzing Multi-Head Self-Attention" (Voita et al. 2019); previous, next and broad
/// attention in sections 3.1 and 3.3 of "What Does BERT Look At?" (Clark et al. 2019); the first token in "Analyzing
/// the Structure of Attention in a Transformer Language Model" (Vig and Belinkov 2019); the same token, as duplicate
/// token heads, in "Interpretability in the Wild" (Wang et al. 2022).
///
/// # Errors
/// `shape_mismatch` for weights of other axes, and for tokens that do not match the keys or queries that stand beyond
/// them; `mask_shape` for a mask that does not fit, `too_large` for one of more than `max_bytes`.
pub fn label_heads(
    weights: &Tensor,
    tokens: Option<&[i32]>,
    mask: Option<&Mask>,
    offset: isize,
    max_bytes: usize,
) -> Result<Vec<HeadLabel>> {
    let [batch, n_heads, n_q, n_k] = sizes(weights)?;
    let size = MaskSize { n_q, n_k, n_heads, batch };
    let met = mask.map(|mask| mask.materialize_behind(size, offset as i64, max_bytes)).transpose()?;
    label_heads_allowed(weights, tokens, met, offset)
}

/// [`label_heads`] under a mask that has met the weights' sizes.
///
/// # Errors
/// `shape_mismatch`, and `mask_shape` for a mask of other sizes.
pub fn label_heads_allowed(
    weights: &Tensor,
    tokens: Option<&[i32]>,
    mask: Option<ResolvedMask>,
    offset: isize,
) -> Result<Vec<HeadLabel>> {
    let [batch, heads, n_q, n_k] = sizes(weights)?;
    if let Some(tokens) = tokens {
        if tokens.len() != n_k && tokens.len() != batch * n_k {
            return Err(AttnError::shape("tokens", &[tokens.len()], format!("[{n_k}] or [{batch}, {n_k}]")));
        }
        if offset < 0 || offset.saturating_add_unsigned(n_q) > n_k as isize {
            let expected = format!("queries that stand on the {n_k} keys, from position offset {offset} on");
            return Err(AttnError::shape("weights", &weights.shape, expected));
        }
    }
    let allowed = match mask {
        Some(mask) => {
            let fits = [1, batch].contains(&mask.shape[0]) && [1, heads].contains(&mask.shape[1]);
            let cells = mask.shape.iter().product::<usize>();
            let is_whole = mask.allowed.len() == cells && mask.bias.as_ref().is_none_or(|bias| bias.len() == cells);
            if !(fits && mask.shape[2..] == [n_q, n_k] && is_whole) {
                return Err(Box::new(AttnError::MaskShape {
                    mask: mask.shape.to_vec(),
                    scores: vec![batch, heads, n_q, n_k],
                    expected: "[batch or 1, heads or 1, n_q, n_k], with a cell for each".into(),
                }));
            }
            Allowed::Mask(mask)
        }
        None if is_causal(weights, offset) => Allowed::UpToQuery,
        None => Allowed::All,
    };

    let mut evidence = vec![HeadEvidence::default(); heads];
    let mut row = Vec::with_capacity(n_k);
    for (at, numbers) in weights.data.chunks_exact(n_k).enumerate() {
        let (entry, head, query) = (at / n_q / heads, at / n_q % heads, at % n_q);
        let position = query as isize + offset;
        row.clear();
        row.extend(
            (0..n_k)
                .filter(|&key| allowed.has(entry, head, query, key, position))
                .map(|key| Share { key, weight: f64::from(numbers[key]) }),
        );
        let total: f64 = row.iter().map(|share| share.weight).sum();
        if row.len() < 2 || !(total > 0.0 && total.is_finite()) {
            continue;
        }
        row.iter_mut().for_each(|share| share.weight /= total);
        let ids = tokens.map(|tokens| &tokens[entry * n_k % tokens.len()..][..n_k]);
        evidence[head].add(&row, position, ids);
    }
    Ok(evidence.iter().map(HeadEvidence::label).collect())
}

/// `[batch, heads, n_q, n_k]`
fn sizes(weights: &Tensor) -> Result<[usize; 4]> {
    match weights.shape[..] {
        [heads, n_q, n_k] => Ok([1, heads, n_q, n_k]),
        [batch, heads, n_q, n_k] => Ok([batch, heads, n_q, n_k]),
        _ => Err(AttnError::shape("weights", &weights.shape, "[heads, n_q, n_k] or [batch, heads, n_q, n_k]")),
    }
}

enum Allowed {
    All,
    UpToQuery,
    Mask(ResolvedMask),
}

impl Allowed {
    fn has(&self, entry: usize, head: usize, query: usize, key: usize, position: isize) -> bool {
        match self {
            Self::All => true,
            Self::UpToQuery => key as isize <= position,
            Self::Mask(mask) => {
                let cell = mask.matrix(entry, head) + query * mask.shape[3] + key;
                mask.allowed[cell] != 0 && mask.bias.as_ref().is_none_or(|bias| bias[cell] > MASK_FILL)
            }
        }
    }
}

fn is_causal(weights: &Tensor, offset: isize) -> bool {
    let n_q = weights.shape[weights.shape.len() - 2];
    weights.data.chunks_exact(weights.width()).enumerate().all(|(at, row)| {
        let seen = (at % n_q) as isize + offset + 1;
        // A comparison that NaN fails: a row without allowed keys says nothing against it.
        !row.iter().skip(seen.max(0) as usize).any(|&weight| weight > 0.0)
    })
}

/// What an allowed key has of its row.
struct Share {
    key: usize,
    weight: f64,
}

/// The patterns that are a set of keys in each row.
const ON_KEYS: [HeadPattern; 5] = [
    HeadPattern::PreviousToken,
    HeadPattern::NextToken,
    HeadPattern::FirstToken,
    HeadPattern::Diagonal,
    HeadPattern::SameToken,
];

impl HeadPattern {
    fn has(self, key: usize, position: isize, ids: Option<&[i32]>) -> bool {
        let at = key as isize;
        match self {
            Self::PreviousToken => at == position - 1,
            Self::NextToken => at == position + 1,
            Self::FirstToken => at == 0 && position != 0,
            Self::Diagonal => at == position,
            Self::SameToken => at != position && ids.is_some_and(|ids| ids[key] == ids[position as usize]),
            Self::Uniform | Self::Mixed => false,
        }
    }
}

/// Sums over the rows that could show a pattern.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    rows: usize,
    score: f64,
    chance: f64,
    variance: f64,
}

impl Evidence {
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.rows > 0).then(|| sum / self.rows as f64)
    }

    /// How far from chance to certainty, where the pattern is clear.
    fn clear(&self) -> Option<f64> {
        let (score, chance) = (self.mean(self.score)?, self.mean(self.chance)?);
        let lift = (score - chance) / (1.0 - chance);
        let deviation = self.variance.sqrt() / self.rows as f64;
        (self.rows >= FEWEST_ROWS && lift >= HALFWAY && score - chance >= DEVIATIONS * deviation).then_some(lift)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct HeadEvidence {
    on_keys: [Evidence; ON_KEYS.len()],
    uniform: Evidence,
}

impl HeadEvidence {
    fn add(&mut self, row: &[Share], position: isize, ids: Option<&[i32]>) {
        let m = row.len() as f64;
        for (pattern, evidence) in ON_KEYS.iter().zip(&mut self.on_keys) {
            let keys = row.iter().filter(|share| pattern.has(share.key, position, ids));
            let (count, weight) = keys.fold((0usize, 0.0), |(count, sum), share| (count + 1, sum + share.weight));
            if count == 0 || count == row.len() {
                continue;
            }
            let t = count as f64;
            evidence.rows += 1;
            evidence.score += weight;
            evidence.chance += t / m;
            evidence.variance += t * (m - t) / (m * m * (m + 1.0));
        }
        self.uniform.rows += 1;
        self.uniform.score += nats(row.iter().map(|share| share.weight)) / m.ln();
        self.uniform.chance += 1.0;
    }

    fn label(&self) -> HeadLabel {
        let numbers = |sum: fn(&Evidence) -> f64| {
            let mean = |evidence: &Evidence| evidence.mean(sum(evidence)).map(|mean| mean as f32);
            let [previous_token, next_token, first_token, diagonal, same_token] = self.on_keys.each_ref().map(mean);
            let uniform = mean(&self.uniform);
            PatternScores { previous_token, next_token, first_token, diagonal, same_token, uniform }
        };
        let clear = ON_KEYS
            .iter()
            .zip(&self.on_keys)
            .filter_map(|(&pattern, evidence)| Some((pattern, evidence, evidence.clear()?)))
            .max_by(|(.., a), (.., b)| a.total_cmp(b));
        let is_uniform = self.uniform.rows >= FEWEST_ROWS
            && self.uniform.mean(self.uniform.score).is_some_and(|score| score >= UNIFORM);
        let (label, score) = match clear {
            Some((pattern, evidence, _)) => (pattern, evidence.mean(evidence.score)),
            None if is_uniform => (HeadPattern::Uniform, self.uniform.mean(self.uniform.score)),
            None => (HeadPattern::Mixed, None),
        };
        HeadLabel {
            label,
            score: score.map(|score| score as f32),
            scores: numbers(|evidence| evidence.score),
            chance: numbers(|evidence| evidence.chance),
        }
    }
}
