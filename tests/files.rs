//! Files: the same content from every container, round trips, and each fault with its place.

use std::collections::BTreeMap;

use attnscope::{AttnError, Plain, Tensor};
use attnscope_files::{Format, read_tensors, write_tensors};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 26;

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/golden/samples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn read(bytes: &[u8]) -> BTreeMap<String, Tensor> {
    read_tensors(bytes, None, MAX_BYTES).unwrap().into_iter().collect()
}

fn alone(bytes: &[u8]) -> Tensor {
    let mut tensors = read(bytes);
    assert_eq!(tensors.keys().collect::<Vec<_>>(), ["tensor"]);
    tensors.pop_first().unwrap().1
}

/// The reference: what the safetensors crate reads.
fn reference(name: &str) -> BTreeMap<String, Tensor> {
    let bytes = sample(name);
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.iter()
        .map(|(name, view)| {
            let data = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            (name.to_string(), Tensor::new(data, view.shape().to_vec()).unwrap())
        })
        .collect()
}

fn assert_close(ours: &Tensor, reference: &Tensor, relative: f32, what: &str) {
    assert_eq!(ours.shape, reference.shape, "{what}");
    for (ours, reference) in ours.data.iter().zip(&reference.data) {
        assert!((ours - reference).abs() <= relative * reference.abs() + 1e-7 * relative.signum(), "{what}");
    }
}

#[test]
fn a_state_dict_is_the_same_from_every_container() {
    let reference = reference("seedA_state_dict.safetensors");
    assert_eq!(reference.len(), 8);
    for (file, prefix, relative) in [
        ("seedA_state_dict.safetensors", "", 0.0),
        ("seedA_state_dict.pt", "", 0.0),
        ("seedA_state_dict_legacy.pth", "", 0.0),
        ("seedA_checkpoint.pt", "model_state_dict.", 0.0),
        ("seedA_dataparallel.pt", "module.", 0.0),
        ("seedA_compiled_f16.pt", "_orig_mod.", 1.0 / 2048.0),
        ("seedA_bf16.pt", "", 1.0 / 256.0),
        ("seedA.npz", "", 0.0),
        ("seedA_compressed.npz", "", 0.0),
    ] {
        let ours = read(&sample(file));
        assert_eq!(ours.len(), 8, "{file}: {:?}", ours.keys());
        for (name, tensor) in &reference {
            assert_close(&ours[&format!("{prefix}{name}")], tensor, relative, &format!("{file}: {name}"));
        }
    }
}

#[test]
fn attention_is_the_same_from_every_container() {
    let reference = &reference("attn.safetensors")["attn"];
    assert_eq!(reference.shape, [2, 4, 6, 6]);
    for (file, relative) in
        [("attn.npy", 0.0), ("attn.pt", 0.0), ("attn.json", 0.0), ("attn_f64.npy", 0.0), ("attn_f16.npy", 1.0 / 2048.0)]
    {
        assert_close(&alone(&sample(file)), reference, relative, file);
    }
    let head = Tensor::new(reference.data[..36].to_vec(), vec![6, 6]).unwrap();
    assert_eq!(alone(&sample("attn_fortran.npy")), head);
    assert_close(&alone(&sample("attn_head0.csv")), &head, 1e-7, "csv");
}

#[test]
fn views_of_one_storage_are_read_right() {
    let reference = &reference("attn.safetensors")["attn"];
    let views = read(&sample("attn_views.pt"));
    assert_eq!(&views["a"], reference);
    assert_eq!(views["at"].shape, [2, 6, 4, 6]);
    for (i, &cell) in views["at"].data.iter().enumerate() {
        let [layer, query, head, key] = [i / 144, i / 24 % 6, i / 6 % 4, i % 6];
        assert_eq!(cell, reference.data[((layer * 4 + head) * 6 + query) * 6 + key]);
    }
    let tuple = read(&sample("attentions_tuple.pt"));
    for (layer, tensor) in ["0", "1"].iter().zip(reference.data.chunks(144)) {
        assert_eq!(tuple[*layer], Tensor::new(tensor.to_vec(), vec![1, 4, 6, 6]).unwrap());
    }
}

// ---------------------------------------------------------------- what is made here

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn npy_of(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"), data)
}

/// An archive of members that are stored, or deflated where their names end in a star.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = rawzip::ZipArchiveWriter::new(Vec::new());
    for (name, data) in members {
        let (name, is_deflated) = name.strip_suffix('*').map_or((*name, false), |name| (name, true));
        let method = if is_deflated { rawzip::CompressionMethod::DEFLATE } else { rawzip::CompressionMethod::STORE };
        let (mut entry, config) = archive.new_file(name).compression_method(method).start().unwrap();
        let packed = if is_deflated { miniz_oxide::deflate::compress_to_vec(data, 9) } else { data.to_vec() };
        let mut checked = config.wrap(std::io::sink());
        std::io::Write::write_all(&mut checked, data).unwrap();
        let (_, descriptor) = checked.finish().unwrap();
        std::io::Write::write_all(&mut entry, &packed).unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn int(number: i32) -> Vec<u8> {
    [b"J", &number.to_le_bytes()[..]].concat()
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(", &items.concat()[..], b"t"].concat()
}

fn ints(numbers: &[i32]) -> Vec<u8> {
    tuple(&numbers.iter().map(|&number| int(number)).collect::<Vec<_>>())
}

/// The pickle of a float32 tensor in storage "0".
fn pickled(count: i32, offset: i32, shape: &[i32], strides: &[i32]) -> Vec<u8> {
    let id = [text("storage"), global("torch", "FloatStorage"), text("0"), text("cpu"), int(count)];
    let storage = [tuple(&id), b"Q".to_vec()].concat();
    let arguments = [storage, int(offset), ints(shape), ints(strides), b"\x89".to_vec(), b"N".to_vec()];
    [global("torch._utils", "_rebuild_tensor_v2"), tuple(&arguments), b"R".to_vec()].concat()
}

fn program(parts: &[&[u8]]) -> Vec<u8> {
    [b"\x80\x02", &parts.concat()[..], b"."].concat()
}

fn pt(pickle: &[u8], numbers: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    zip(&[("x/data.pkl", pickle), ("x/byteorder", b"little"), ("x/data/0", &data)])
}

fn legacy(pickle: &[u8], storages: &[u8]) -> Vec<u8> {
    let magic = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    [&program(&[magic])[..], &program(&[b"M\xe9\x03"]), &program(&[b"}"]), pickle, storages].concat()
}

// ---------------------------------------------------------------- what is read

#[test]
fn every_number_type_of_npy_in_both_byte_orders() {
    macro_rules! check {
        ($($descr:literal: $type:ty = $numbers:expr),* $(,)?) => { $(
            let numbers: [$type; 3] = $numbers;
            let expected = numbers.map(|number| number as f32);
            let [little, big] = [<$type>::to_le_bytes, <$type>::to_be_bytes].map(|to| numbers.map(to).concat());
            assert_eq!(alone(&npy_of(concat!("<", $descr), "(3,)", &little)).data, expected, $descr);
            assert_eq!(alone(&npy_of(concat!(">", $descr), "(3,)", &big)).data, expected, $descr);
        )* };
    }
    check! {
        "i1": i8 = [-1, 0, 127], "i2": i16 = [-2, 0, 300], "i4": i32 = [-3, 0, 70000], "i8": i64 = [-4, 0, 1 << 40],
        "u1": u8 = [1, 0, 255], "u2": u16 = [1, 0, 65535], "u4": u32 = [1, 0, u32::MAX], "u8": u64 = [1, 0, u64::MAX],
        "f4": f32 = [-1.5, 0.0, f32::INFINITY], "f8": f64 = [-1.5, 0.0, 1e300],
    }
    assert_eq!(alone(&npy_of("|b1", "(2,)", &[0, 1])).data, [0.0, 1.0]);
    assert_eq!(alone(&npy_of("<f2", "(2,)", &[0x00, 0x3c, 0x01, 0x00])).data, [1.0, 2f32.powi(-24)]);
    assert_eq!(alone(&npy_of(">f2", "()", &[0xbc, 0x00])), Tensor::new(vec![-1.0], vec![1]).unwrap());
}

#[test]
fn npy_of_every_version_and_in_fortran_order() {
    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }\n";
    let data: Vec<u8> = (0..12).collect();
    let expected = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11].map(|number| number as f32);
    assert_eq!(alone(&npy(header, &data)).data, expected);
    for version in [2, 3] {
        let length = (header.len() as u32).to_le_bytes();
        let bytes = [b"\x93NUMPY", &[version, 0][..], &length, header.as_bytes(), &data].concat();
        assert_eq!(alone(&bytes), Tensor::new(expected.to_vec(), vec![2, 3, 2]).unwrap());
    }
}

#[test]
fn every_number_type_of_safetensors() {
    for (dtype, bytes, expected) in [
        ("BOOL", &[1u8][..], 1.0),
        ("U8", &[200], 200.0),
        ("I8", &[200], -56.0),
        ("U16", &[0, 200], 51200.0),
        ("I16", &[0, 200], -14336.0),
        ("F16", &[0, 0xbc], -1.0),
        ("BF16", &[0xc0, 0x3f], 1.5),
        ("U32", &[1, 0, 0, 0], 1.0),
        ("I32", &[255; 4], -1.0),
        ("F32", &[0, 0, 0x80, 0x3f], 1.0),
        ("U64", &[1, 0, 0, 0, 0, 0, 0, 0], 1.0),
        ("I64", &[255; 8], -1.0),
        ("F64", &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f], 1.0),
    ] {
        let size = bytes.len();
        let header = format!(
            r#"{{"__metadata__":{{"format":"pt"}},"ä\u00e4 \ud83d\ude00":{{"dtype":"{dtype}","shape":[],"data_offsets":[0,{size}]}}}}"#
        );
        let tensors = read(&safetensors(&header, bytes));
        assert_eq!(tensors["ää 😀"], Tensor::new(vec![expected], vec![1]).unwrap(), "{dtype}");
    }
}

#[test]
fn checkpoints_of_any_nesting_protocol_and_packing() {
    let tensor = pickled(6, 1, &[2, 2], &[1, 2]);
    let expected = Tensor::new(vec![1.0, 3.0, 2.0, 4.0], vec![2, 2]).unwrap();
    let numbers: Vec<f32> = (0..6).map(|number| number as f32).collect();
    let inner = [b"}", &text("w")[..], &tensor, b"s"].concat();
    let list = [b"](", &inner[..], b"G@\x00\x00\x00\x00\x00\x00\x00", b"e"].concat();
    let nested = program(&[b"}(", &text("m"), &list, b"K\x07", &tensor, &text("epoch"), b"K\x03u"]);
    let tensors = read(&pt(&nested, &numbers));
    assert_eq!(tensors.keys().collect::<Vec<_>>(), ["7", "m.0.w"]);
    assert!(tensors.values().all(|tensor| *tensor == expected));

    // Protocol 4: a frame, short text, and the global's name from the stack.
    let name = b"\x8c\x0ctorch._utils\x94\x8c\x12_rebuild_tensor_v2\x94\x93\x94".to_vec();
    let tail = &tensor[global("torch._utils", "_rebuild_tensor_v2").len()..];
    let modern = [b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00", &name[..], tail, b"."].concat();
    assert_eq!(alone(&pt(&modern, &numbers)), expected);

    // What holds no tensors and is called by name: torch.float16, torch.device("cpu"), a set in two protocols, Namespace(), a Counter.
    let called = |module: &str, name: &str, arguments: &[u8]| [&global(module, name), arguments, b"R"].concat();
    let settings = program(&[
        b"}(",
        &text("dtype"),
        &global("torch", "float16"),
        &text("device"),
        &called("torch", "device", &[&text("cpu")[..], b"\x85"].concat()),
        &text("seen"),
        &called("__builtin__", "set", b"]K\x01a\x85"),
        &text("seen too"),
        b"\x8f(K\x01K\x02\x90",
        &text("args"),
        &[&global("argparse", "Namespace")[..], b")\x81}", &text("lr"), b"K\x01sb"].concat(),
        &text("counts"),
        &called("collections", "Counter", &[b"}", &text("a")[..], b"K\x02s\x85"].concat()),
        &text("states"),
        &[
            &called("collections", "defaultdict", &[&global("__builtin__", "dict")[..], b"\x85"].concat()),
            &text("w")[..],
            &tensor,
            b"s",
        ]
        .concat(),
        b"u",
    ]);
    let tensors_beside = read(&pt(&settings, &numbers));
    assert_eq!(tensors_beside.keys().collect::<Vec<_>>(), ["states.w"]);
    assert_eq!(tensors_beside["states.w"], expected);

    let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    let packed = zip(&[("a/b/data.pkl*", &nested), ("a/b/byteorder*", b"big"), ("a/b/data/0*", &data)]);
    assert_eq!(read(&packed), tensors);
}

#[test]
fn tables_with_headers_and_labels() {
    let expected = Tensor::new(vec![0.25, 0.75, f32::INFINITY, -1e-3], vec![2, 2]).unwrap();
    for file in [
        "0.25,0.75\ninf,-1e-3\n",
        "\u{feff}0.25, 0.75\r\n\r\nInfinity,-1e-3",
        "the,cat\n0.25,0.75\ninf,-1e-3",
        ",the,2\nthe,0.25,0.75\n2,inf,-1e-3",
        "0,0.25,0.75\n1,inf,-1e-3".replace("0,0", ",0,1\n0,0").as_str(),
        "the,0.25,0.75\ncat,inf,-1e-3",
        "\"a \"\"b\"\", c\",\"d\"\n\"0.25\",0.75\ninf,-1e-3",
        "0.25\t0.75\ninf\t-1e-3",
        "\tthe\tcat\nthe\t0.25\t0.75\ncat\tinf\t-1e-3",
        "0.25;0.75\ninf;-1e-3",
        "the;cat\n0,25;0,75\ninf;-1e-3",
        "0.25 0.75\n# a remark\ninf   -1e-3\n",
    ] {
        assert_eq!(alone(file.as_bytes()), expected, "{file:?}");
    }
    let counted = alone(b"token,0,1,2\nthe,1,0,0\ncat,0.5,0.5,0");
    assert_eq!(counted.shape, [2, 3]);
    assert!(alone(b"NaN,1\n1,nan").data[3].is_nan());
}

#[test]
fn json_by_name_and_alone() {
    let square = Tensor::new(vec![1.0, 2.0, 3.0, 4.0], vec![2, 2]).unwrap();
    assert_eq!(alone(b"[[1, 2], [3, 4e0]]"), square);
    assert_eq!(alone(br#"{"shape": [2, 2], "data": [1, 2, 3, 4]}"#), square);
    // A Float32Array, as JSON.stringify writes it.
    assert_eq!(read(br#"{"w": {"data": {"0": 1, "1": 2, "2": 3, "3": 4}, "shape": [2, 2]}}"#)["w"], square);
    assert_eq!(read(br#"{"data": {"0": [1]}, "shape": [1]}"#).keys().collect::<Vec<_>>(), ["data.0", "shape"]);
    let file = r#"{"tokens": ["the", "cat"], "n": 3, "deep": {"er": {"data": [1, 2, 3, 4], "shape": [2, 2]}},
                   "plain": [[1, 2], [3, 4]], "shape": [1.5], "flag": true, "none": null}"#;
    let tensors = read(file.as_bytes());
    assert_eq!(tensors.keys().collect::<Vec<_>>(), ["deep.er", "plain", "shape"]);
    assert_eq!((&tensors["deep.er"], &tensors["plain"]), (&square, &square));
    let words = alone(br#"[NaN, null, -Infinity, "-Infinity", "NaN", true]"#).data;
    assert!(words[0].is_nan() && words[1].is_nan() && words[4].is_nan());
    assert_eq!([words[2], words[3], words[5]], [f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0]);
}

/// `torch.save({"n": torch.tensor([1 + 2j, 3 - 4j]).conj().imag})`: what is stored has other signs than the tensor.
#[test]
fn a_tensor_whose_signs_are_to_be_turned_is_refused() {
    for name in ["negative.pt", "negative_legacy.pt"] {
        let (_, message) = fault(&sample(name), None);
        assert!(message.contains("resolve_neg"), "{name}: {message}");
    }
}

/// A header of 640 bytes makes the file begin as a pickle does.
#[test]
fn a_safetensors_file_is_one_whatever_the_length_of_its_header() {
    for length in [640, 896, 1152, 1408, 66_176] {
        let mut header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#.to_string();
        header.extend(std::iter::repeat_n(' ', length - header.len()));
        let mut file = (length as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(2.5f32.to_le_bytes());
        assert_eq!(read(&file)["a"], Tensor::new(vec![2.5], vec![1]).unwrap(), "{length}");
    }
}

#[test]
fn what_numpy_and_pytorch_print() {
    let expected = Tensor::new(vec![1.0, -0.5, f32::INFINITY, 3e-5], vec![2, 2]).unwrap();
    for file in [
        "tensor([[ 1.0000e+00, -5.0000e-01],\n        [        inf,  3.0000e-05]], device='cuda:0', dtype=torch.float64)",
        "tensor([[1., -0.5],\n\n [inf, 3e-5]], grad_fn=<SoftmaxBackward0>)\n",
        "Parameter containing:\ntensor([[1., -0.5], [inf, 3e-5]], requires_grad=True)",
        "array([[ 1. , -0.5],\n       [ inf,  3e-5]], dtype=float32)",
        "x = torch.tensor([[1, -0.5], [inf, 3e-5]])",
        "Out[3]: \ntensor([[1., -0.5],\n        [inf, 3e-5]])",
        "In [3]: weights[0]\nOut[3]: tensor([[1., -0.5],\n        [inf, 3e-5]])",
        ">>> x\narray([[ 1. , -0.5],\n       [ inf,  3e-5]])",
        ">>> print(x)\n[[ 1.   -0.5]\n [ inf  3e-5]]",
        "the weights tensor([[1., -0.5], [inf, 3e-5]])",
        "weights[0]: tensor([[1., -0.5], [inf, 3e-5]])",
        "W_Q = [[1, -0.5], [inf, 3e-5]]",
        "tensor([[1., -0.5], [inf, 3e-5]], names=('N', 'C'))",
        "the weights [[ 1.   -0.5]\n [ inf  3e-5]]",
        "np.array([[1., -0.5,], [inf, 3e-5],])",
        "[[ 1.   -0.5]\n [ inf  3e-5]]",
    ] {
        assert_eq!(alone(file.as_bytes()), expected, "{file}");
    }
    assert_eq!(alone(b"[[ True False]]"), Tensor::new(vec![1.0, 0.0], vec![1, 2]).unwrap());
    assert_eq!(alone(b"tensor(0.5000)"), Tensor::new(vec![0.5], vec![1]).unwrap());
    assert_eq!(alone(b"x = tensor(7, dtype=torch.int16)"), Tensor::new(vec![7.0], vec![1]).unwrap());
    assert_eq!(alone(b"np.float32(0.5)"), Tensor::new(vec![0.5], vec![1]).unwrap());
    assert_eq!(alone(b"x = np.float32(0.5)"), Tensor::new(vec![0.5], vec![1]).unwrap());
    // Several are refused, as is what belongs to none.
    for file in ["tensor(1.)\ntensor(2.)", "tensor([1., 2.]) tensor(0.25)", "tensor([1., 2.],\n 3., 4.]])"] {
        fault(file.as_bytes(), None);
    }
    // First rows of tables are none.
    for first in ["[CLS]", "{", "[the]"] {
        for separator in [",", "\t"] {
            let file = [first, "0.5", "0.25\nthe", "1", "2\n"].join(separator);
            let expected = Tensor::new(vec![0.5, 0.25, 1.0, 2.0], vec![2, 2]).unwrap();
            assert_eq!(alone(file.as_bytes()), expected, "{file}");
        }
    }
    for file in ["loss (train),f(x)\n1,-0.5\n", "f(x),g(x)\n1,-0.5\n", "a: [V],b = (1)\n1,-0.5\n"] {
        assert_eq!(alone(file.as_bytes()), Tensor::new(vec![1.0, -0.5], vec![1, 2]).unwrap(), "{file}");
    }
}

// ---------------------------------------------------------------- faults

#[derive(Debug, PartialEq)]
enum At {
    Byte(u64),
    Cell(usize, usize),
}

/// The fault's place, and its message.
fn fault(bytes: &[u8], format: Option<Format>) -> (At, String) {
    let error = read_tensors(bytes, format, MAX_BYTES).unwrap_err();
    assert_eq!(error.code().as_str(), "bad_file", "{error}");
    let AttnError::BadFile { offset, line, column, .. } = *error else { unreachable!() };
    let at = match (offset, line, column) {
        (Some(offset), None, None) => At::Byte(offset),
        (None, Some(line), Some(column)) => At::Cell(line, column),
        place => panic!("{place:?} is no place"),
    };
    (at, error.to_string())
}

fn assert_faults(format: Format, faults: &[(Vec<u8>, At, &str)]) {
    let mut wrong = String::new();
    for (i, (bytes, at, says)) in faults.iter().enumerate() {
        let (found, message) = fault(bytes, Some(format));
        if !message.contains(says) || found != *at {
            wrong += &format!("{i}: {message}\n  {found:?}, expected {at:?}, {says}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn faults_of_safetensors() {
    let entry = |dtype: &str, shape: &str, range: &str| {
        format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{range}}}}}"#)
    };
    let file = |dtype: &str, shape: &str, range: &str| safetensors(&entry(dtype, shape, range), &[0; 8]);
    let two = |second: &str| {
        let first =
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":"#;
        safetensors(&format!("{first}{second}}}}}"), &[0; 8])
    };
    let mut endless = file("F32", "[2]", "[0,8]");
    endless[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_faults(
        Format::Safetensors,
        &[
            (vec![1, 2, 3], At::Byte(0), "3 bytes, expected 8 bytes of the header's length"),
            (endless, At::Byte(0), "18446744073709551615"),
            (file("F8_E4M3", "[8]", "[0,8]"), At::Byte(22), "F8_E4M3"),
            (file("F32", "[2]", "[0,9]"), At::Byte(9), "[0, 9]"),
            (file("F32", "[2]", "[8,0]"), At::Byte(9), "[8, 0]"),
            (file("F32", "[3]", "[0,8]"), At::Byte(9), "8 bytes for shape [3], expected 12"),
            (file("F32", "[4294967296,4294967296,4]", "[0,8]"), At::Byte(9), "fits in memory"),
            (file("F32", "[-2]", "[0,8]"), At::Byte(37), "whole number"),
            (file("F32", "[2]", "[0]"), At::Byte(55), "1 data_offsets"),
            (file("F32", "[1]", "[0,4]"), At::Byte(66), "4 bytes of no tensor"),
            (two("[3,7]"), At::Byte(61), "no gap and no overlap"),
            (two("[5,9]"), At::Byte(61), "within 8 bytes"),
            (two("[4,8]]"), At::Byte(111), "found \"]\""),
            (safetensors(r#"{"w":{"dtype":"F32","shape":[2]}}"#, &[0; 8]), At::Byte(9), "data_offsets"),
            (safetensors(r#"{"w":{"type":"F32"}}"#, &[]), At::Byte(14), "\"type\""),
            (safetensors(r#"{"w":"#, &[]), At::Byte(13), "the end"),
            (safetensors("{\"\u{0}\\q\":1}", &[]), At::Byte(12), "escape"),
            (safetensors("{}", &[]), At::Byte(0), "no tensor"),
            ([&[3, 0, 0, 0, 0, 0, 0, 0][..], b"{\"\xff"].concat(), At::Byte(10), "0xff"),
        ],
    );
}

#[test]
fn faults_of_npy() {
    assert_faults(
        Format::Npy,
        &[
            (b"\x93NUMP".to_vec(), At::Byte(0), "5 bytes"),
            (b"NUMPY.....".to_vec(), At::Byte(0), "x93NUMPY"),
            (b"\x93NUMPY\x04\x00\x00\x00".to_vec(), At::Byte(6), "version 4.0"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), At::Byte(12), "1 bytes, expected 4294967295"),
            (
                npy_of("<f4", "(2, 3)", &[0; 20]),
                At::Byte(70),
                "20 bytes, expected 24 bytes of numbers for shape [2, 3]",
            ),
            (npy_of("<f4", "(2, 3)", &[0; 25]), At::Byte(94), "1 more bytes"),
            (npy_of("<f4", "(4294967296, 4294967296, 16)", &[]), At::Byte(10), "fits in memory"),
            (npy_of("<f4", "(999999999999,)", &[]), At::Byte(79), "3999999999996 bytes"),
            (npy_of("<c8", "(1,)", &[0; 8]), At::Byte(20), "<c8"),
            (npy_of("|O", "(1,)", &[0; 8]), At::Byte(20), "Python objects"),
            (npy("{'descr': [('a', '<f4')], }", &[]), At::Byte(20), "structured"),
            (npy("{'descr': '<f4', 'fortran_order': 1, }", &[]), At::Byte(44), "True or False"),
            (npy("{'descr': '<f4', 'shape': (1,), }", &[0; 4]), At::Byte(10), "fortran_order"),
            (npy_of("<f4", "(0,)", &[]), At::Byte(0), "no tensor"),
        ],
    );
}

#[test]
fn faults_of_zip_archives() {
    let array = npy_of("<f4", "(1,)", &[0; 4]);
    let whole = zip(&[("a.npy", &array)]);
    let mut damaged = whole.clone();
    damaged[35 + array.len() - 1] = 1;
    let mut claims = zip(&[("a.npy*", &[0; 100_000])]);
    let directory = claims.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    claims[directory + 24..directory + 28].copy_from_slice(&u32::MAX.to_le_bytes()[..4]);
    claims[directory + 27] = 0x7f;
    let mut method = whole.clone();
    let directory = method.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    method[directory + 10] = 14;
    // One member listed forty times.
    let mut lists = zip(&[("a.npy", &npy_of("<f4", "(100,)", &[0; 400]))]);
    let start = lists.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let end = lists.windows(4).position(|bytes| bytes == b"PK\x05\x06").unwrap();
    let record = lists[start..end].to_vec();
    lists.splice(end..end, record.repeat(39));
    let tail = end + 39 * record.len();
    lists[tail + 8] = 40;
    lists[tail + 10] = 40;
    lists[tail + 12..tail + 16].copy_from_slice(&(40 * record.len() as u32).to_le_bytes());
    assert_faults(
        Format::Npz,
        &[
            (whole[..whole.len() - 5].to_vec(), At::Byte(whole.len() as u64 - 5), "zip"),
            (damaged, At::Byte(35), "checksum"),
            (claims, At::Byte(0), "packed bytes can hold"),
            (method, At::Byte(0), "stored or deflated"),
            (lists, At::Byte(0), "do not overlap"),
            (zip(&[("a.npy", &array), ("a.npy", &array)]), At::Byte(0), "two tensors named \"a\""),
            (zip(&[("a.txt", b"x")]), At::Byte(0), "no tensor"),
            (zip(&[("a.npy", b"x")]), At::Byte(35), "1 bytes"),
            (zip(&[("a.npy*", &[array.as_slice(), &[0]].concat())]), At::Byte(35), "1 more bytes"),
        ],
    );
}

/// What would be inflated is refused by its sum, before any of it is.
#[test]
fn bombs_are_too_large() {
    let zeros = npy_of("<f4", "(1048576,)", &vec![0; 1 << 22]);
    let names: Vec<String> = (0..20).map(|i| format!("{i}.npy*")).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (&name[..], &zeros[..])).collect();
    let bomb = zip(&members);
    assert!(bomb.len() < 100_000);
    let error = read_tensors(&bomb, None, MAX_BYTES).unwrap_err();
    assert!(matches!(*error, AttnError::TooLarge { needed, max_bytes: 67_108_864 } if needed > 67_108_864), "{error}");

    // A view that repeats one number, and a million of them.
    let error = read_tensors(&pt(&program(&[&pickled(1, 0, &[1 << 30], &[0])]), &[0.0]), None, MAX_BYTES).unwrap_err();
    assert_eq!(error.code().as_str(), "too_large");
    // Lists of lists of lists, each twice the one before.
    let mut pickle = b"]q\x00".to_vec();
    for i in 1..60u8 {
        pickle.extend([b']', b'(', b'h', i - 1, b'h', i - 1, b'e', b'q', i]);
    }
    let error = read_tensors(&pt(&program(&[&pickle]), &[0.0]), None, 1 << 22).unwrap_err();
    assert_eq!(error.code().as_str(), "too_large");
}

#[test]
fn faults_of_pytorch_files() {
    // The pickle is the first member: its bytes start after a header of 30 and a name of 10.
    let file = |parts: &[&[u8]]| pt(&program(parts), &[0.0; 4]);
    let at = |offset: u64| At::Byte(40 + offset);
    let tensor = |offset: i32, shape: &[i32], strides: &[i32]| file(&[&pickled(4, offset, shape, strides)]);
    let end = pickled(4, 0, &[1], &[1]).len() as u64;
    let deep = [vec![b']'; 100], vec![b'a'; 99]].concat();
    assert_faults(
        Format::Torch,
        &[
            (file(&[&global("os", "system"), &text("ls"), b"\x85R"]), at(2), "\"os.system\""),
            (file(&[b"\x8c\x02os\x8c\x06system\x93"]), at(14), "\"os.system\""),
            (file(&[&global("torch", "ComplexFloatStorage")]), at(2), "torch.ComplexFloatStorage"),
            (file(&[b"i"]), at(2), "operation 0x69"),
            (file(&[b"t"]), at(2), "no mark"),
            (file(&[b"(R"]), at(3), "empty stack"),
            (file(&[b"h\x05"]), at(2), "memo 5"),
            (file(&[b"Nq\x01"]), at(3), "memo 1"),
            (file(&[b"\x80\x06"]), at(2), "protocol 6"),
            (file(&[b"X\xff\xff\xff\xffabc"]), at(7), "4294967295 bytes"),
            (file(&[b"X\x01\x00\x00\x00\xff"]), at(2), "UTF-8"),
            (file(&[b"ctorch"]), at(2), "without an end"),
            (file(&[b"N)R"]), at(4), "a call of None"),
            (file(&[b"NQ"]), at(3), "persistent id"),
            (file(&[b"}N)s"]), at(0), "a key that is None"),
            (file(&[b"]K\x01K\x02s"]), at(7), "a list, expected a dict"),
            (file(&[&deep]), at(0), "64 deep"),
            (file(&[b"]q\x00h\x00a"]), at(0), "64 deep"),
            (tensor(0, &[5], &[1]), at(1 + end), "a view within the 4 numbers"),
            (tensor(4, &[1], &[1]), at(1 + end), "a view within the 4 numbers"),
            (tensor(-1, &[1], &[1]), at(1 + end), "offset -1"),
            (tensor(0, &[2, 2], &[1]), at(11 + end - 5), "2 axes with 1 strides"),
            (tensor(0, &[-1], &[1]), at(1 + end), "whole numbers"),
            (tensor(0, &[i32::MAX; 3], &[0; 3]), at(1 + end + 20), "fits in memory"),
            (tensor(0, &[1; 65], &[1; 65]), at(1 + end + 640), "64 axes"),
            (pt(&program(&[&pickled(5, 0, &[1], &[1])]), &[0.0; 4]), at(89), "20 bytes of storage \"0\""),
            (file(&[&pickled(4, 0, &[4], &[1]), &pickled(5, 0, &[5], &[1]), b"\x86"]), at(200), "20 bytes of storage"),
            (zip(&[("x/data.pkl", &program(&[&pickled(1, 0, &[1], &[1])]))]), At::Byte(0), "x/data/0"),
            (zip(&[("x", b"")]), At::Byte(0), "data.pkl"),
            (file(&[b"N"]), At::Byte(0), "no tensor"),
            (program(&[b"N"]), At::Byte(0), "one that torch.save wrote"),
        ],
    );
}

#[test]
fn faults_of_older_pytorch_files() {
    let pickle = program(&[&pickled(2, 0, &[2], &[1])]);
    let keys = program(&[b"]", &text("0"), b"a"]);
    let numbers = [2u64.to_le_bytes(), [0, 0, 128, 63, 0, 0, 0, 64]].concat();
    let whole = legacy(&pickle, &[&keys[..], &numbers].concat());
    assert_eq!(alone(&whole).data, [1.0, 2.0]);
    let storages = (whole.len() - numbers.len()) as u64;
    let list = storages - keys.len() as u64;
    let with = |storages: &[&[u8]]| legacy(&pickle, &storages.concat());
    assert_faults(
        Format::Torch,
        &[
            (whole[..whole.len() - 1].to_vec(), At::Byte(storages + 8), "7 bytes, expected 8 bytes of storage \"0\""),
            (with(&[&keys, &3u64.to_le_bytes(), &[0; 12]]), At::Byte(storages), "3 numbers, expected 2"),
            (with(&[&program(&[b"N"])]), At::Byte(list), "a list of the storages' keys"),
            (with(&[&program(&[b"]", &text("9"), b"a"]), &numbers]), At::Byte(list), "storage \"9\""),
            (with(&[&program(&[b"]"])]), At::Byte(137), "no storage \"0\""),
        ],
    );
}

#[test]
fn a_broken_file_of_pytorch_is_no_npz() {
    let whole = pt(&program(&[&pickled(1, 0, &[1], &[1])]), &[0.0]);
    let (_, message) = fault(&whole[..whole.len() - 30], None);
    assert!(message.starts_with("pt file, byte "), "{message}");
}

#[test]
fn faults_of_tables() {
    let csv = |text: &str| text.as_bytes().to_vec();
    assert_faults(
        Format::Csv,
        &[
            (csv("1,2\n3,abc\n"), At::Cell(2, 2), "\"abc\", expected a number"),
            (csv("a,b\n\n1,2\n\"x\ny\",4\n5,6"), At::Cell(5, 1), "x\ny"),
            (csv("1,2\n3,4,5\n"), At::Cell(2, 3), "a row of 3 numbers, expected 2"),
            (csv("1,2\n3\n"), At::Cell(2, 1), "a row of 1"),
            (csv(",a,b\nx,1,2\ny,1,\n"), At::Cell(3, 3), "an empty cell"),
            (csv("1,...,2"), At::Cell(1, 2), "set_printoptions"),
            (csv("a,b,c\n"), At::Cell(1, 1), "no tensor"),
            // A slip in the first row is no header.
            (csv("0.1,0.2x\n0.3,0.4"), At::Cell(1, 2), "\"0.2x\", expected a number"),
            (csv("0.1x,0.2\n0.3,0.4\n0.5,0.6"), At::Cell(1, 1), "\"0.1x\", expected a number"),
            (csv("0.1x,0.2x\n0.3,0.4\n0.5,0.6"), At::Cell(1, 1), "\"0.1x\", expected a number"),
            (csv("0.1,oops,-2x\n0.3,0.4,0.5"), At::Cell(1, 2), "\"oops\", expected a number"),
            (csv("-1l\n2\n3"), At::Cell(1, 1), "\"-1l\", expected a number"),
        ],
    );
    assert_faults(Format::Tsv, &[(csv("1\t2\n3\t4x"), At::Cell(2, 2), "4x")]);
}

#[test]
fn faults_of_json() {
    let json = |text: &str| text.as_bytes().to_vec();
    assert_faults(
        Format::Json,
        &[
            (json("[[1, 2],\n [3]]"), At::Cell(2, 4), "an array of 1 at [1], expected 2, as the first"),
            (json("[[[1], [2]], [[3], 4]]"), At::Cell(1, 20), "a number at [1][1], expected an array"),
            (json("[1, [2]]"), At::Cell(1, 5), "an array at [1], expected a number"),
            (json("{\"a\": [[1, 2],\n [3, \"x\"]]}"), At::Cell(2, 6), "\"x\" at [1][1], expected a number"),
            (json("[1 2]"), At::Cell(1, 4), "\",\" or \"]\""),
            (json("[1,]"), At::Cell(1, 4), "\"]\", expected a number"),
            (json("[[1], []]"), At::Cell(1, 8), "an array of 0 at [1]"),
            (json("[1, 2"), At::Cell(1, 6), "the end"),
            (json("[1] 2"), At::Cell(1, 5), "expected the end"),
            (json("{\"a\" 1}"), At::Cell(1, 6), "\":\""),
            (json("{\"a\": x}"), At::Cell(1, 7), "\"x\", expected a number"),
            (json("{\"a"), At::Cell(1, 2), "closing quote"),
            (json("{\"shape\": [2, 2], \"data\": [1, 2, 3]}"), At::Cell(1, 1), "3 numbers, expected as many as shape"),
            (json("5"), At::Cell(1, 1), "an array or an object"),
            (json(&"[".repeat(100_000)), At::Cell(1, 65), "at most 64"),
            (json(&"{\"a\":".repeat(100_000)), At::Cell(1, 326), "at most 64"),
            (json("{\"a\": [1], \"a\": [2]}"), At::Cell(1, 1), "two tensors named \"a\""),
            (json("{\"a\": 1}"), At::Cell(1, 1), "no tensor"),
            (vec![b'[', 0xff], At::Byte(1), "UTF-8"),
        ],
    );
}

#[test]
fn faults_of_printed_text() {
    let text = |text: &str| text.as_bytes().to_vec();
    assert_faults(
        Format::Text,
        &[
            (text("tensor([[1, 2],\n  ...,\n [3, 4]])"), At::Cell(2, 3), "print again after torch.set_printoptions"),
            (text("[[1. ... 2.]]"), At::Cell(1, 6), "numpy.set_printoptions(threshold=sys.maxsize)"),
            (text("tensor([1.])\ntensor([2.])"), At::Cell(2, 1), "expected the end"),
            (text("tensor([1., 2.]"), At::Cell(1, 16), "\")\""),
            (text("array([1., x])"), At::Cell(1, 12), "\"x\" at [1]"),
            (text("1 2\n3 4 5\n"), At::Cell(2, 1), "a row of 3, expected 2"),
            (text("1 2\n3 word"), At::Cell(2, 3), "\"word\""),
        ],
    );
    let (_, message) = fault(b"", None);
    assert!(message.contains("no bytes"));
}

#[test]
fn a_fault_says_only_the_places_it_has() {
    let error = read_tensors(b"[1, x]", None, MAX_BYTES).unwrap_err();
    assert_eq!(error.to_string(), "json file, line 1, column 5: found \"x\" at [1], expected a number");
    let Plain::Object(details) = (*error).into() else { panic!("details are an object") };
    assert!(details.contains(&("column", Plain::Number(5.0))));
    assert!(details.iter().all(|(name, _)| *name != "offset"));
}

// ---------------------------------------------------------------- what is written

fn named_tensors() -> impl Strategy<Value = Vec<(String, Tensor)>> {
    let shape = prop::collection::vec(1usize..5, 1..4);
    let tensor = shape.prop_flat_map(|shape| {
        let size: usize = shape.iter().product();
        let number = any::<u32>().prop_map(f32::from_bits);
        prop::collection::vec(number, size).prop_map(move |data| Tensor::new(data, shape.clone()).unwrap())
    });
    prop::collection::btree_map("[^\u{0}-\u{1f}]{1,12}", tensor, 1..4)
        .prop_map(|tensors| tensors.into_iter().collect::<Vec<_>>())
}

/// NaN equals NaN; everything else to the bit.
fn same(ours: &[(String, Tensor)], theirs: &[(String, Tensor)]) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|((name, a), (other, b))| {
            let cells = a.data.iter().zip(&b.data);
            name == other
                && a.shape == b.shape
                && cells.into_iter().all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(tensors in named_tensors()) {
        for format in [Format::Safetensors, Format::Npz, Format::Json] {
            let bytes = write_tensors(&tensors, format).unwrap();
            let back = read_tensors(&bytes, None, MAX_BYTES).unwrap();
            prop_assert!(same(&back, &tensors), "{format:?}: {back:?}");
        }
        let one = vec![("tensor".to_string(), tensors[0].1.clone())];
        let bytes = write_tensors(&one, Format::Npy).unwrap();
        prop_assert!(same(&read_tensors(&bytes, None, MAX_BYTES).unwrap(), &one));
        let size = one[0].1.data.len();
        let matrix = vec![("tensor".to_string(), Tensor::new(one[0].1.data.clone(), vec![1, size]).unwrap())];
        let bytes = write_tensors(&matrix, Format::Csv).unwrap();
        prop_assert!(same(&read_tensors(&bytes, Some(Format::Csv), MAX_BYTES).unwrap(), &matrix));
    }

    /// Others read what is written.
    #[test]
    fn the_safetensors_crate_reads_what_is_written(tensors in named_tensors()) {
        let bytes = write_tensors(&tensors, Format::Safetensors).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        prop_assert_eq!(file.len(), tensors.len());
        for (name, tensor) in &tensors {
            let view = file.tensor(name).unwrap();
            prop_assert_eq!(view.shape(), &tensor.shape[..]);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_tensors(&bytes, None, MAX_BYTES);
    }
}

#[test]
fn what_a_format_does_not_hold_is_refused() {
    let tensor = |shape: &[usize]| Tensor::new(vec![0.0; shape.iter().product()], shape.to_vec()).unwrap();
    let two = [("a".to_string(), tensor(&[1])), ("b".to_string(), tensor(&[1]))];
    let cube = [("a".to_string(), tensor(&[2, 2, 2]))];
    let twice = [two[0].clone(), two[0].clone()];
    let code = |tensors: &[(String, Tensor)], format| write_tensors(tensors, format).unwrap_err().code().as_str();
    assert_eq!(code(&two, Format::Npy), "invalid_option");
    assert_eq!(code(&two, Format::Csv), "invalid_option");
    assert_eq!(code(&cube, Format::Csv), "shape_mismatch");
    assert_eq!(code(&twice, Format::Json), "invalid_tensor");
    for format in [Format::Torch, Format::Tsv, Format::Text] {
        assert_eq!(code(&cube, format), "invalid_option");
    }
}
