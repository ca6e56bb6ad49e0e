"""The structures of fpa.h and DLPack, as ctypes sees them. docs/abi.md says when they may change."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

CPU = 1  # DLPack's kDLCPU
CUDA = 2  # DLPack's kDLCUDA

# Name of the library -> DLPack's type code and bits. A mask of keys is bytes, 0 or not.
DTYPES: dict[str, tuple[int, int]] = {"f32": (2, 32), "bf16": (4, 16), "f16": (2, 16), "mask": (1, 8)}
DTYPES.update(i32=(0, 32), i64=(0, 64))  # offsets and indices

# In the order of fpa_form; the names of head/form.c.
FORMS: tuple[str, ...] = ("parallel", "chunked", "recurrent")
AUTO = -1
RECURRENT = 2
OBJECTS_CHANGED = -1

LogFunction = CFUNCTYPE(None, c_void_p, c_char_p)


class DLTensor(Structure):
    """DLPack's DLTensor; its device and dtype are written out."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class ExchangeTable(Structure):
    """DLPack's DLPackExchangeAPI, of major version 1."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev_api", c_void_p),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    ]


class Tensors(Structure):
    """fpa_tensors. Pointers to DLTensor are addresses: they are set once and followed by C alone."""

    _fields_ = [
        ("q", c_void_p),
        ("k", c_void_p),
        ("v", c_void_p),
        ("o", c_void_p),
        ("log_gate", c_void_p),
        ("state_in", c_void_p),
        ("state_out", c_void_p),
        ("weights", c_void_p),
        ("stream", c_void_p),
        ("recent", c_int64),
        ("positions", c_void_p),
        ("key_mask", c_void_p),
        ("den", c_void_p),
        ("cu_seqlens", c_void_p),
        ("max_length", c_int64),
        ("state_index", c_void_p),
        ("state_out_index", c_void_p),
    ]


class ObjectCall(Structure):
    """fpa_object_call."""

    _fields_ = [
        ("read", c_void_p),
        ("stream", c_void_p),
        ("release", c_void_p),
        ("acquire", c_void_p),
        ("kernel", c_void_p),
        ("layer", c_void_p),
        ("form", c_int),
        ("tensors", c_void_p),
        ("workspace_size", c_size_t),
        ("error", c_void_p),
    ]


class Accepted(Structure):
    """fpa_accepted."""

    _fields_ = [
        ("count", c_void_p),
        ("k", c_void_p),
        ("v", c_void_p),
        ("log_gate", c_void_p),
        ("positions", c_void_p),
        ("key_mask", c_void_p),
    ]


class GradientTensors(Structure):
    """fpa_gradient_tensors."""

    _fields_ = [
        ("q", c_void_p),
        ("k", c_void_p),
        ("v", c_void_p),
        ("log_gate", c_void_p),
        ("state_in", c_void_p),
        ("weights", c_void_p),
        ("o", c_void_p),
        ("den", c_void_p),
        ("d_o", c_void_p),
        ("d_state_out", c_void_p),
        ("d_q", c_void_p),
        ("d_k", c_void_p),
        ("d_v", c_void_p),
        ("d_log_gate", c_void_p),
        ("d_state_in", c_void_p),
        ("d_weights", c_void_p),
        ("stream", c_void_p),
        ("cu_seqlens", c_void_p),
        ("max_length", c_int64),
        ("state_index", c_void_p),
        ("positions", c_void_p),
        ("key_mask", c_void_p),
    ]


class Options(Structure):
    """fpa_options."""

    _fields_ = [
        ("target", c_char_p),
        ("device", c_int),
        ("cache_dir", c_char_p),
        ("compiler", c_char_p),
        ("log", LogFunction),
        ("log_user", c_void_p),
        ("backward", c_int),
    ]


class WeightShape(Structure):
    """fpa_weight_shape."""

    _fields_ = [("rows", c_int), ("columns", c_int), ("per_head", c_int)]


class Description(Structure):
    """fpa_description."""

    _fields_ = [
        ("name", c_char_p),
        ("target", c_char_p),
        ("dtype", c_char_p),
        ("state_dtype", c_char_p),
        ("arithmetic", c_char_p),
        ("device", c_int),
        ("d", c_int),
        ("dv", c_int),
        ("causal", c_int),
        ("gate", c_int),
        ("normalized", c_int),
        ("features", c_int64),
        ("state_elements", c_int64),
        ("chunk", c_int),
        ("block", c_int),
        ("crossover", c_int64),
        ("flop", c_double * 3),
        ("weight_count", c_int),
        ("weight_names", POINTER(c_char_p)),
        ("verdict", c_char_p),
        ("from_cache", c_int),
        ("positions", c_int),
        ("key_mask", c_int),
        ("heads", c_int),
        ("window", c_int),
        ("backward_verdict", c_char_p),
        ("weight_shapes", POINTER(WeightShape)),
        ("weight_kinds", POINTER(c_char_p)),
    ]


class LayerPart(Structure):
    """fpa_layer_part."""

    _fields_ = [
        ("head", POINTER(Description)),
        ("first", c_int),
        ("heads", c_int),
        ("state_offset", c_int64),
        ("first_weight", c_int),
    ]


class LayerDescription(Structure):
    """fpa_layer_description."""

    _fields_ = [
        ("name", c_char_p),
        ("target", c_char_p),
        ("dtype", c_char_p),
        ("state_dtype", c_char_p),
        ("device", c_int),
        ("d", c_int),
        ("dv", c_int),
        ("heads", c_int),
        ("gate", c_int),
        ("normalized", c_int),
        ("key_mask", c_int),
        ("positions", c_int),
        ("window", c_int),
        ("backward", c_int),
        ("state_elements", c_int64),
        ("weight_count", c_int),
        ("weight_names", POINTER(c_char_p)),
        ("part_count", c_int),
        ("parts", POINTER(LayerPart)),
    ]


class ErrorText(Structure):
    """fpa_error."""

    _fields_ = [("code", c_int), ("where", c_char * 256), ("message", c_char * 1024)]
