"""libclave as ctypes sees it: its functions, its structs, its table of errors.

``_bridge.so.1`` (packages/python/bridge) is linked with libclave, so one handle finds the functions of both. A test
compares the structs with those of the headers."""
from __future__ import annotations

import ctypes
import functools
import os
from ctypes import (POINTER, Structure, c_bool, c_char_p, c_int, c_int8, c_int32, c_int64, c_size_t, c_ssize_t,
                    c_uint, c_uint8, c_uint32, c_uint64, c_void_p)
from typing import Any, Sequence, Tuple, Union

library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "_bridge.so.1"))

NEVER = 2 ** 63 - 1  # CLAVE_NEVER, as a deadline
TRY = -2 ** 63  # CLAVE_TRY; also what a hold deadline is when the grant is over
WORDS = 8  # BRIDGE_WORDS
Words = c_ssize_t * WORDS


class Acl(Structure):
    _fields_ = [("perms", c_int32), ("scheme", c_char_p), ("id", c_char_p)]


class Retry(Structure):
    _fields_ = [("kind", c_int), ("base_ms", c_int32), ("max_ms", c_int32), ("times", c_int32), ("elapsed_ms", c_int64)]


class Auth(Structure):
    _fields_ = [("scheme", c_char_p), ("auth", c_char_p), ("len", c_size_t)]


class ClientOptions(Structure):
    _fields_ = [("size", c_size_t), ("hosts", c_char_p), ("session_timeout_ms", c_int32), ("margin_ms", c_int32),
                ("relay_interval_ms", c_int32), ("seed", c_uint64), ("read_only", c_bool), ("keep_order", c_bool),
                ("max_frame", c_size_t), ("reconnect", Retry), ("reads", Retry), ("resume_session_id", c_int64),
                ("resume_passwd", c_uint8 * 16), ("mem", c_void_p), ("state_cb", c_void_p), ("state_arg", c_void_p),
                ("log", c_void_p), ("log_arg", c_void_p), ("tls", c_void_p), ("auths", POINTER(Auth)),
                ("nauths", c_size_t), ("resume", c_char_p), ("resume_file", c_char_p)]


class TlsOptions(Structure):
    _fields_ = [("size", c_size_t), ("ca_file", c_char_p), ("cert_file", c_char_p), ("key_file", c_char_p),
                ("server_name", c_char_p), ("any_name", c_bool)]


class CreateOptions(Structure):
    _fields_ = [("size", c_size_t), ("mode", c_int), ("flags", c_uint), ("ttl_ms", c_int64), ("acls", POINTER(Acl)),
                ("nacls", c_size_t), ("with_names", c_bool)]


class Op(Structure):
    _fields_ = [("kind", c_int), ("path", c_char_p), ("data", c_char_p), ("len", c_size_t), ("version", c_int32),
                ("mode", c_int), ("acls", POINTER(Acl)), ("nacls", c_size_t), ("ttl_ms", c_int64)]


class MutexOptions(Structure):
    _fields_ = [("size", c_size_t), ("data", c_char_p), ("len", c_size_t), ("acls", POINTER(Acl)), ("nacls", c_size_t),
                ("max_hold_ms", c_int64), ("min_valid_ms", c_int64), ("strict", c_bool), ("revocable", c_bool),
                ("detect_deadlocks_ms", c_int64), ("lock_roots", POINTER(c_char_p)),
                ("nlock_roots", c_size_t), ("event_cb", c_void_p), ("event_arg", c_void_p), ("simple_prefix", c_char_p)]


class MultilockPart(Structure):
    _fields_ = [("path", c_char_p), ("kind", c_int)]


class MultilockOptions(Structure):
    _fields_ = [("size", c_size_t), ("each", POINTER(MutexOptions)), ("event_cb", c_void_p), ("event_arg", c_void_p)]


class SemaphoreOptions(Structure):
    _fields_ = [("size", c_size_t), ("limit", c_uint32), ("limit_path", c_char_p), ("data", c_char_p), ("len", c_size_t),
                ("acls", POINTER(Acl)), ("nacls", c_size_t), ("max_hold_ms", c_int64), ("min_valid_ms", c_int64),
                ("revocable", c_bool), ("detect_deadlocks_ms", c_int64), ("lock_roots", POINTER(c_char_p)),
                ("nlock_roots", c_size_t), ("event_cb", c_void_p), ("event_arg", c_void_p)]


class SlotsOptions(Structure):
    _fields_ = [("size", c_size_t), ("limit", c_uint32), ("acls", POINTER(Acl)), ("nacls", c_size_t),
                ("event_cb", c_void_p), ("event_arg", c_void_p)]


class SlotStruct(Structure):
    _fields_ = [("id", c_char_p), ("host", c_char_p), ("by", c_char_p), ("reason", c_char_p), ("node", c_char_p),
                ("token", c_int64), ("since", c_int64)]


class LatchOptions(Structure):
    _fields_ = [("size", c_size_t), ("id", c_char_p), ("acls", POINTER(Acl)), ("nacls", c_size_t), ("policy", c_int),
                ("max_term_ms", c_int64), ("min_valid_ms", c_int64), ("strict", c_bool), ("revocable", c_bool),
                ("priority", c_int32), ("spread", c_bool), ("preempt", c_bool), ("event_cb", c_void_p),
                ("event_arg", c_void_p), ("layout", c_int), ("prefix", c_char_p)]


class IdentityStruct(Structure):
    _fields_ = [("host", c_char_p), ("pid", c_int64), ("name", c_char_p), ("command", c_char_p), ("text", c_char_p),
                ("owner", c_char_p), ("task", c_char_p), ("limit", c_uint32), ("yields", c_bool), ("asked", c_bool),
                ("revocable", c_int8), ("traceparent", c_char_p)]


class OnceOptions(Structure):
    _fields_ = [("size", c_size_t), ("path", c_char_p), ("period_ms", c_int64), ("at_most_once", c_bool),
                ("acls", POINTER(Acl)), ("nacls", c_size_t), ("identity", POINTER(IdentityStruct))]


class DelayOptions(Structure):
    _fields_ = [("size", c_size_t), ("path", c_char_p), ("delay_ms", c_int64), ("acls", POINTER(Acl)),
                ("nacls", c_size_t), ("identity", POINTER(IdentityStruct)), ("event_cb", c_void_p),
                ("event_arg", c_void_p)]


class CacheOptions(Structure):
    _fields_ = [("size", c_size_t), ("single_node", c_bool), ("without_data", c_bool), ("max_data", c_size_t),
                ("max_nodes", c_size_t), ("max_bytes", c_size_t), ("window", c_uint32),
                ("without_persistent_watch", c_bool), ("filter", c_void_p), ("filter_arg", c_void_p), ("mem", c_void_p),
                ("refresh_ms", c_uint32)]


class PersistentWatcherOptions(Structure):
    _fields_ = [("size", c_size_t), ("single_node", c_bool)]


class InstancesOptions(Structure):
    _fields_ = [("size", c_size_t), ("base", c_char_p), ("service", c_char_p), ("down_errors", c_uint32),
                ("down_ms", c_uint32)]


class PersistentNodeOptions(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("replace", c_bool), ("ttl_ms", c_int64), ("data", c_char_p),
                ("len", c_size_t), ("acls", c_void_p), ("nacls", c_size_t), ("event_cb", c_void_p),
                ("event_arg", c_void_p)]


# The struct of the headers that each of these is.
STRUCTS = {
    Acl: "clave_acl", Retry: "clave_retry", Auth: "clave_auth", ClientOptions: "clave_client_options",
    TlsOptions: "clave_tls_options", CreateOptions: "clave_create_options", Op: "clave_op",
    MutexOptions: "clave_mutex_options", MultilockPart: "clave_multilock_part",
    MultilockOptions: "clave_multilock_options", SemaphoreOptions: "clave_semaphore_options",
    SlotsOptions: "clave_slots_options", SlotStruct: "clave_slot", LatchOptions: "clave_latch_options",
    IdentityStruct: "clave_identity", OnceOptions: "clave_once_options", DelayOptions: "clave_delay_options",
    CacheOptions: "clave_cache_options", PersistentWatcherOptions: "clave_persistent_watcher_options",
    InstancesOptions: "clave_instances_options", PersistentNodeOptions: "clave_persistent_node_options",
}

# What is called from the caller's own thread. Everything else of libclave goes through the loop's.
_DIRECT: Sequence[Tuple[str, Any, Sequence[Any]]] = (
    ("clave_version", c_char_p, ()),
    ("clave_now", c_int64, ()),
    ("clave_err_name", c_char_p, (c_int,)),
    ("clave_strerror", c_char_p, (c_int,)),
    ("clave_err_classify", c_int, (c_int,)),
    ("clave_state_name", c_char_p, (c_int,)),
    ("clave_identity_format", c_size_t, (POINTER(IdentityStruct), c_char_p, c_size_t)),
    ("clave_uri_spec_fault", c_char_p, (c_char_p,)),
    ("clave_uri_spec_format", c_size_t, (c_char_p, c_char_p, c_size_t)),
    ("clave_loop_new", c_int, (POINTER(c_void_p),)),
    ("clave_client_open", c_int, (POINTER(c_void_p), c_void_p, c_char_p, POINTER(ClientOptions))),
    ("clave_client_wait", c_int, (c_void_p, c_int64)),
    ("clave_client_set_hosts", c_int, (c_void_p, c_char_p)),
    ("clave_client_hand_over", c_int, (c_void_p, c_char_p, c_int64)),
    ("clave_client_close", None, (c_void_p, c_int64)),
    ("clave_client_state", c_int, (c_void_p,)),
    ("clave_client_id", c_int64, (c_void_p,)),
    ("clave_client_errmsg", c_char_p, (c_void_p, c_char_p, c_size_t)),
    ("clave_tls_new", c_int, (POINTER(c_void_p), POINTER(TlsOptions), c_char_p, c_size_t)),
    ("clave_tls_free", None, (c_void_p,)),
    ("clave_metrics_copy", c_int, (c_int, c_char_p, c_size_t, POINTER(c_size_t))),
    ("clave_metrics_content_type", c_char_p, (c_int,)),
    ("clave_metrics_accepted", c_int, (c_char_p,)),
    ("bridge_channel_new", c_void_p, ()),
    ("bridge_channel_free", None, (c_void_p,)),
    ("bridge_channel_fd", c_int, (c_void_p,)),
    ("bridge_channel_clear", None, (c_void_p,)),
    ("bridge_channel_take", c_void_p, (c_void_p, POINTER(c_uint64))),
    ("bridge_note_new", c_void_p, ()),
    ("bridge_note_read", c_size_t, (c_void_p, POINTER(c_void_p))),
    ("bridge_note_free", None, (c_void_p,)),
    ("bridge_session", c_int, (c_void_p, POINTER(c_void_p))),
    ("bridge_now", c_int, (c_void_p, c_void_p, Words, POINTER(c_ssize_t))),
    ("bridge_free", c_int, (c_void_p, c_void_p, c_void_p, c_void_p)),
    ("bridge_start", c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_uint64, c_void_p, Words, c_uint, c_void_p)),
    ("bridge_wait", c_bool, (c_void_p, c_int)),
    ("bridge_abandon", c_bool, (c_void_p, c_void_p, c_void_p, c_void_p, c_uint64)),
    ("bridge_undo", None, (c_void_p, c_void_p)),
    ("bridge_source_new", c_void_p, (c_void_p, c_uint64, c_uint64)),
    ("bridge_source_free", None, (c_void_p,)),
)
for _name, _result, _arguments in _DIRECT:
    _function = getattr(library, _name)
    _function.restype = _result
    _function.argtypes = _arguments
DIRECT = frozenset(name for name, _, _ in _DIRECT)


@functools.lru_cache(maxsize=None)
def address(name: str) -> int:
    """Where a function is, for the bridge to call it on the loop's thread."""
    found = ctypes.cast(getattr(library, name), c_void_p).value
    assert found
    return found


def word(value: Any) -> int:
    """An argument as a number: the address of what is not a number. The caller keeps that alive."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if isinstance(value, bytes):
        return ctypes.cast(c_char_p(value), c_void_p).value or 0
    return ctypes.addressof(value)


def encoded(text: str) -> bytes:
    """A text for libclave, where a NUL would end it."""
    made = text.encode()
    if 0 in made:
        raise ValueError(f"a text cannot contain the character NUL: {text!r}")
    return made


Data = Union[bytes, bytearray, memoryview, str]
"""What a node holds: a text is its UTF-8."""


def data_of(data: Data) -> bytes:
    if isinstance(data, bytes):
        return data
    return data.encode() if isinstance(data, str) else memoryview(data).tobytes()


def counted(data: Data) -> Tuple[bytes, int]:
    made = data_of(data)
    return made, len(made)


def options(kind: Any, **fields: Any) -> Any:
    """An options struct with its size; a field of None keeps its default."""
    made = kind(size=ctypes.sizeof(kind))
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, encoded(value) if isinstance(value, str) else value)
    return made


def array(kind: Any, items: Sequence[Any]) -> Any:
    return (kind * len(items))(*items) if items else None
