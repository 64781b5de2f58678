//! npz: a zip archive of npy files. Source: <https://numpy.org/doc/stable/reference/generated/numpy.savez.html>

use crate::source::Budget;
use crate::zip::{self, Zip};
use crate::{Named, Result, npy};

pub(crate) fn read(zip: &Zip<'_>, budget: &mut Budget) -> Result<Vec<Named>> {
    let mut tensors = Vec::new();
    for member in &zip.members {
        let Some(name) = member.name.strip_suffix(".npy") else { continue };
        let bytes = zip.bytes(member)?;
        zip.verify(member, &bytes)?;
        let tensor = npy::read(zip.source(member, &bytes), budget)?;
        tensors.extend(tensor.map(|tensor| (name.to_string(), tensor)));
    }
    Ok(tensors)
}

pub(crate) fn write(tensors: &[Named]) -> Vec<u8> {
    let members: Vec<_> = tensors.iter().map(|(name, tensor)| (format!("{name}.npy"), npy::write(tensor))).collect();
    zip::write(&members)
}
