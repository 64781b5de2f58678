//! Threads that share a piece of work. Its items are taken one by one by whoever is free, the caller among them, and each is
//! computed as it would be alone: so the numbers do not depend on how many threads there are.
//!
//! A helper is a thread that calls [`help`]: one of the operating system, or a worker with the same WebAssembly and the same
//! memory. In WebAssembly whose memory is not shared there are none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

const ARE_THERE: bool = cfg!(any(not(target_family = "wasm"), target_feature = "atomics"));
/// The least work of a thread, in multiply-adds: below, waking it costs more.
const SHARE: f64 = (1 << 21) as f64;
/// How often one who waits looks by itself before it sleeps: for some tenths of a millisecond, which is more than what lies between
/// the jobs of a pass. On a busy machine one who sleeps may wake milliseconds late.
const LOOKS: usize = 1 << 18;

/// What the caller and its helpers know of each other.
struct Crew {
    state: Mutex<State>,
    /// The number of the latest job, for those who look.
    latest: AtomicUsize,
    /// How many helpers are in the job, for those who look.
    helping: AtomicUsize,
    opened: Condvar,
    left: Condvar,
}

struct State {
    job: Option<Job>,
    /// How many helpers may still join the job.
    places: usize,
    /// Whether a helper died in a job.
    is_broken: bool,
    /// Helpers with lower numbers are to go.
    dismissed: usize,
}

/// What each thread does of a piece of work. `dyn Fn` would hold its code twice, once to be called by value.
trait Work: Sync {
    fn run(&self);
}

impl<F: Fn() + Sync> Work for F {
    fn run(&self) {
        self();
    }
}

type Job = &'static dyn Work;

static CREW: Crew = Crew {
    state: Mutex::new(State { job: None, places: 0, is_broken: false, dismissed: 0 }),
    latest: AtomicUsize::new(0),
    helping: AtomicUsize::new(0),
    opened: Condvar::new(),
    left: Condvar::new(),
};

/// Held by the one caller whose job it is.
static CALLER: Mutex<()> = Mutex::new(());

static LIMIT: AtomicUsize = AtomicUsize::new(1);

/// From here on at most so many threads, the caller among them, share a piece of work.
pub fn limit(threads: usize) {
    LIMIT.store(threads, Ordering::Relaxed);
}

/// How many threads work of so many multiply-adds is for, which may be more than WebAssembly counts addresses.
pub fn count(work: f64) -> usize {
    if ARE_THERE { ((work / SHARE) as usize).clamp(1, LIMIT.load(Ordering::Relaxed).max(1)) } else { 1 }
}

/// Does items as long as there are any, and gives what comes of each.
type Worker<'w, R> = dyn Fn(&mut dyn FnMut(R)) + Sync + 'w;

/// Calls `act` with every item, on so many threads at most. Each thread has a value of its own to go on with.
///
/// # Panics
/// Where `act` does.
pub fn each<T: Send, Own: Default>(
    threads: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    act: impl Fn(&mut Own, T) + Sync,
) {
    let (count, items) = (items.len(), Mutex::new(items));
    let next = || lock(&items).next();
    let work: &dyn Work = &|| {
        let mut own = Own::default();
        while let Some(item) = next() {
            act(&mut own, item);
        }
    };
    share(threads.min(count), work, &mut || work.run());
}

/// The same, where the caller alone takes what `act` gives: its own at once, that of others between its items.
///
/// # Panics
/// Where `act` does.
pub fn each_taken<T: Send, R: Send>(
    threads: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    act: impl Fn(T) -> R + Sync,
    take: &mut dyn FnMut(R),
) {
    let (count, items, given) = (items.len(), Mutex::new(items), Mutex::new(Vec::new()));
    // The loop is there once, for the caller and those who help.
    let work: &Worker<R> = &|give| {
        let next = || lock(&items).next();
        while let Some(item) = next() {
            give(act(item));
        }
    };
    let help = || work(&mut |result| lock(&given).push(result));
    let take_given = |take: &mut dyn FnMut(R)| {
        // The list is free for others while these are taken.
        let results = std::mem::take(&mut *lock(&given));
        results.into_iter().for_each(take);
    };
    share(threads.min(count), &help, &mut || {
        work(&mut |result| {
            take(result);
            take_given(take);
        });
    });
    take_given(take);
}

/// Lets so many threads run the job, the caller among them with `part`, which is its way to do it.
// Once, not in every caller.
#[inline(never)]
fn share(threads: usize, job: &dyn Work, part: &mut dyn FnMut()) {
    // Who finds another caller's job under way, or is in one, works alone.
    let caller = (ARE_THERE && threads > 1)
        .then(|| match CALLER.try_lock() {
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            free_or_not => free_or_not.ok(),
        })
        .flatten();
    if caller.is_none() {
        return part();
    }
    /// Lets nobody out, not even by a panic, before the job is withdrawn and all who joined it have left.
    struct Closing;
    impl Drop for Closing {
        fn drop(&mut self) {
            lock(&CREW.state).job = None;
            look(|| CREW.helping.load(Ordering::Acquire) == 0);
            let state = lock(&CREW.state);
            drop(CREW.left.wait_while(state, |_| CREW.helping.load(Ordering::Acquire) > 0));
        }
    }
    {
        // SAFETY: the job is called only by those who joined it, and `Closing` waits for them before what it borrows can end.
        let job = unsafe { std::mem::transmute::<&dyn Work, Job>(job) };
        let mut state = lock(&CREW.state);
        (state.job, state.places) = (Some(job), threads - 1);
        CREW.latest.fetch_add(1, Ordering::Release);
        CREW.opened.notify_all();
    }
    let closing = Closing;
    part();
    drop(closing);
    assert!(!std::mem::take(&mut lock(&CREW.state).is_broken), "a thread died");
}

/// Helps with one job after the other, until it is dismissed.
pub fn help(number: usize) {
    if !ARE_THERE {
        return;
    }
    let mut latest = 0;
    loop {
        look(|| CREW.latest.load(Ordering::Acquire) != latest);
        let mut state = lock(&CREW.state);
        let job = loop {
            if number < state.dismissed {
                return;
            }
            let is_new = CREW.latest.load(Ordering::Acquire) != latest;
            if let Some(job) = state.job.filter(|_| is_new && state.places > 0) {
                break job;
            }
            state = CREW.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        latest = CREW.latest.load(Ordering::Acquire);
        state.places -= 1;
        CREW.helping.fetch_add(1, Ordering::AcqRel);
        drop(state);
        leave(catch_unwind(AssertUnwindSafe(|| job.run())).is_err());
    }
}

/// A helper leaves its job. One that died in it is said to have by others, since WebAssembly unwinds nothing.
pub fn leave(is_broken: bool) {
    let mut state = lock(&CREW.state);
    state.is_broken |= is_broken;
    CREW.helping.fetch_sub(1, Ordering::AcqRel);
    CREW.left.notify_all();
}

/// Sends the helpers with numbers below this away, as soon as they are in no job.
pub fn dismiss(below: usize) {
    let mut state = lock(&CREW.state);
    state.dismissed = below;
    CREW.latest.fetch_add(1, Ordering::Release);
    CREW.opened.notify_all();
}

fn look(is_there: impl Fn() -> bool) {
    (0..LOOKS).take_while(|_| !is_there()).for_each(|_| std::hint::spin_loop());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    /// One test, for the helpers are everybody's.
    #[test]
    fn items_are_shared_helpers_go_and_a_panic_is_the_callers() {
        let helpers: Vec<_> = (0..3).map(|number| thread::spawn(move || help(number))).collect();
        // 1. Four who wait for each other are four threads.
        for _ in 0..100 {
            let (barrier, seen) = (Barrier::new(4), Mutex::new(HashSet::new()));
            let mut items = vec![0; 4];
            each(4, items.iter_mut(), |_: &mut (), item| {
                barrier.wait();
                lock(&seen).insert(thread::current().id());
                *item += 1;
            });
            assert_eq!((items, lock(&seen).len()), (vec![1; 4], 4));
        }
        // 2. Each item once, by no more threads than are asked for, whatever each takes.
        for (threads, count) in [(1, 5), (2, 1000), (3, 7), (4, 0), (8, 3)] {
            let seen = Mutex::new(HashSet::new());
            let mut items = vec![0; count];
            each(threads, items.iter_mut(), |_: &mut (), item| {
                lock(&seen).insert(thread::current().id());
                *item += 1;
                // Inside an item there is nobody to help.
                each(threads, [item].into_iter(), |_: &mut (), item| *item += 1);
            });
            assert_eq!(items, vec![2; count]);
            assert!(lock(&seen).len() <= threads);
        }
        // 3. What helpers give the caller takes, all of it.
        for (threads, count) in [(1, 5), (2, 1000), (4, 0), (4, 40)] {
            let mut taken = Vec::new();
            each_taken(threads, 0..count, |item| item, &mut |item| taken.push(item));
            taken.sort_unstable();
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
        }
        // 4. A panic in a helper is the caller's, and what is borrowed outlives all.
        let barrier = Barrier::new(2);
        let caller = thread::current().id();
        let result = catch_unwind(|| {
            each(2, 0..2, |_: &mut (), _| {
                barrier.wait();
                assert_eq!(thread::current().id(), caller, "on purpose");
            });
        });
        assert!(result.is_err());
        dismiss(3);
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
    }
}
