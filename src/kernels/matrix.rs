//! Matrices seen through strides: to be read, and to be written by several at once.

use std::marker::PhantomData;
use std::ops::Range;

/// A matrix seen through strides: element (row, column) lies at `row * row_stride + column * column_stride`.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A view of `rows` rows, `row_stride` apart, of `columns` numbers each.
    ///
    /// # Panics
    /// Where the view reaches past the data.
    pub fn new(data: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(rows.saturating_sub(1) * row_stride + columns <= data.len(), "a matrix view reaches past its data");
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// The same numbers with rows and columns exchanged; nothing moves.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn rows(self, rows: Range<usize>) -> Self {
        assert!(rows.end <= self.rows, "a matrix has fewer rows");
        Self { data: &self.data[rows.start * self.row_stride..], rows: rows.len(), ..self }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f32 {
        self.data[row * self.row_stride + column * self.column_stride]
    }
}

/// A matrix that is written: rows of numbers side by side, `row_stride` apart. What lies between the rows may be another's.
pub struct MatrixMut<'a> {
    pub(super) start: *mut f32,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    numbers: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is the only way to its numbers, as `&mut [f32]` is.
unsafe impl Send for MatrixMut<'_> {}

impl<'a> MatrixMut<'a> {
    /// A view of `rows` rows, `row_stride` apart, of `columns` numbers each.
    ///
    /// # Panics
    /// Where the view reaches past the data, or rows into each other.
    pub fn new(data: &'a mut [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(columns <= row_stride || rows <= 1, "rows of a matrix overlap");
        assert!(rows.saturating_sub(1) * row_stride + columns <= data.len(), "a matrix view reaches past its data");
        Self { start: data.as_mut_ptr(), rows, columns, row_stride, numbers: PhantomData }
    }

    /// Some rows and columns.
    ///
    /// # Safety
    /// Nobody else has any of them while the part lives.
    unsafe fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(rows.end <= self.rows && columns.end <= self.columns, "a part reaches past its matrix");
        // SAFETY: the view lies within its data.
        let start = unsafe { self.start.add(rows.start * self.row_stride + columns.start) };
        Self { start, rows: rows.len(), columns: columns.len(), ..*self }
    }

    /// Some of the rows, for a while.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn rows(&mut self, rows: Range<usize>) -> MatrixMut<'_> {
        // SAFETY: the part borrows the only way to them.
        unsafe { self.part(rows, 0..self.columns) }
    }

    /// Cut into blocks of so many rows, the last of what is left.
    pub fn row_blocks(self, height: usize) -> impl ExactSizeIterator<Item = Self> {
        (0..self.rows.div_ceil(height)).map(move |block| {
            let start = block * height;
            // SAFETY: blocks have no row in common, and each is given once.
            unsafe { self.part(start..self.rows.min(start + height), 0..self.columns) }
        })
    }

    /// Cut into blocks of so many columns, the last of what is left.
    pub fn column_blocks(self, width: usize) -> impl ExactSizeIterator<Item = Self> {
        (0..self.columns.div_ceil(width)).map(move |block| {
            let start = block * width;
            // SAFETY: blocks have no column in common, and each is given once.
            unsafe { self.part(0..self.rows, start..self.columns.min(start + width)) }
        })
    }

    /// The numbers of a row.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "a matrix has fewer rows");
        // SAFETY: the view lies within its data and is the only way to it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.row_stride), self.columns) }
    }
}
