//! How fast the kernels are where they run natively: `cargo bench -p attnscope-kernels`. In browsers, `npm run bench`.

use attnscope_kernels::attention::{KeysAndValues, Queries, Room, Weighing, attend};
use attnscope_kernels::layer_norm::layer_norm_row;
use attnscope_kernels::matmul::{Packed, matmul_packed, matmul_reference};
use attnscope_kernels::matrix::{Matrix, MatrixMut};
use attnscope_kernels::softmax::softmax_row;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Numbers from -1 to 1.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 1.37).sin()).collect()
}

/// Multiply-adds in a second, beside the plain reference where that takes less than a second.
fn matmul(c: &mut Criterion) {
    let mut group = c.benchmark_group("matmul");
    for (m, k, n) in [(32, 64, 64), (128, 512, 512), (512, 768, 768)] {
        let (a, b) = (numbers(m * k), numbers(k * n));
        let (a, b) = (Matrix::new(&a, m, k, k), Matrix::new(&b, k, n, n));
        let (packed, mut out) = (Packed::new(b), vec![0.0; m * n]);
        let size = format!("{m}x{k}x{n}");
        group.throughput(Throughput::Elements((m * k * n) as u64));
        group.bench_function(BenchmarkId::new("tiles", &size), |bencher| {
            bencher.iter(|| matmul_packed(a, &packed, None, &mut out, n));
        });
        if m < 512 {
            group.bench_function(BenchmarkId::new("reference", &size), |bencher| {
                bencher.iter(|| matmul_reference(a, b, None));
            });
        }
    }
}

/// One head of each size that the benchmark in browsers has, its keys and values packed as well.
fn attention(c: &mut Criterion) {
    let mut group = c.benchmark_group("attention, a head");
    for (n, d) in [(32, 16), (128, 64), (512, 64), (1024, 64)] {
        let (query, key, value) = (numbers(n * d), numbers(n * d), numbers(n * d));
        let rows = |numbers| Matrix::new(numbers, n, d, d);
        let how = Weighing { scale: (d as f32).sqrt().recip(), softcap: 0.0, fill: -1e9, zero_empty_rows: false };
        let (mut kv, mut room, mut out) = (KeysAndValues::default(), Room::default(), vec![0.0; n * d]);
        group.throughput(Throughput::Elements((2 * n * n * d) as u64));
        group.bench_function(format!("{n} tokens, width {d}"), |bencher| {
            bencher.iter(|| {
                kv.pack(rows(&key), rows(&value), false);
                let context = MatrixMut::new(&mut out, n, d, d);
                let queries = Queries { query: rows(&query), mask: None, context, factor: None };
                for (_, block) in queries.blocks(n) {
                    attend(block, &kv, how, &mut room);
                }
            });
        });
    }
}

/// Numbers in a second.
fn rows(c: &mut Criterion) {
    let mut group = c.benchmark_group("a row");
    for n in [32, 512] {
        let (row, weight, bias) = (numbers(n), numbers(n), numbers(n));
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("softmax", n), |bencher| {
            bencher.iter_batched_ref(|| row.clone(), |row| softmax_row(row), BatchSize::SmallInput);
        });
        group.bench_function(BenchmarkId::new("layer_norm", n), |bencher| {
            let act = |row: &mut Vec<f32>| layer_norm_row(row, &weight, Some(&bias), 1e-5);
            bencher.iter_batched_ref(|| row.clone(), act, BatchSize::SmallInput);
        });
    }
}

criterion_group!(kernels, matmul, attention, rows);
criterion_main!(kernels);
