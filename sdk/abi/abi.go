// Package abi is the wire format between Loadstone and its plugins, version 1:
// names of exports and imports, the layout of batches, and the limits that the
// host enforces. Host and guest SDK both import it; authors in other languages
// can take it as the reference.
//
// All numbers are little-endian and unpadded. A batch is
//
//	u16 version, u16 flags, u32 nops
//	nops × { u16 statement, u8 nargs, nargs × { u8 type, value } }
//
// where value is nothing (null), 8 bytes (i64, f64, timestamp), 1 byte (bool),
// u32 length and data (text, bytes), two bytes k, c (ref), or two bytes pool,
// column and a u32 (key).
package abi

// The ABI version that ls_abi returns, major<<16 | minor.
const (
	Major   = 1
	Minor   = 0
	Version = Major<<16 | Minor
	// BatchVersion is the version field of a batch header.
	BatchVersion = 1
)

// The exports of a guest.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportABI        = "ls_abi"
	ExportDescribe   = "ls_describe"
	ExportAlloc      = "ls_alloc"
	ExportOpen       = "ls_open"
	ExportFill       = "ls_fill"
	ExportFeed       = "ls_feed"
	ExportRows       = "ls_rows"
	ExportCall       = "ls_call"
	ExportError      = "ls_error"
)

// The only import besides WASI: ls.log(level, ptr, len).
const (
	ImportModule = "ls"
	ImportLog    = "log"
	WASIModule   = "wasi_snapshot_preview1"
)

// The levels of ls.log.
const (
	LogDebug int32 = iota
	LogInfo
	LogWarning
	LogError
)

// The special results of ls_fill.
const (
	FillError  int64 = -1
	FillFeedMe int64 = -2
)

// The value types of a batch.
const (
	TypeNull      uint8 = 0
	TypeI64       uint8 = 1
	TypeF64       uint8 = 2
	TypeText      uint8 = 3
	TypeBytes     uint8 = 4
	TypeBool      uint8 = 5
	TypeTimestamp uint8 = 6 // i64 µs since the Unix epoch, UTC
	TypeRef       uint8 = 7 // u8 k, u8 c
	TypeKey       uint8 = 8 // u8 pool, u8 column, u32 number of the key
)

// The control statements.
const (
	StatementBegin    uint16 = 0xFF00
	StatementCommit   uint16 = 0xFF01
	StatementRollback uint16 = 0xFF02
	StatementDelay    uint16 = 0xFF03 // one i64 argument, µs
	// FirstControl is the first statement id that is not an index of the frozen list.
	FirstControl uint16 = 0xFF00
)

// The limits that the host enforces.
const (
	MaxModuleBytes  = 8 << 20
	MaxBatchBytes   = 8 << 20
	MaxBatchOps     = 1024
	MaxRowsPerCall  = 10_000
	MaxArgs         = 255
	MaxStatements   = 1024
	MaxDocument     = 4 << 20 // a JSON document in either direction
	MaxErrorMessage = 2048
	MaxLogLine      = 1024
	MaxDelayMicros  = 3600 * 1_000_000
	MaxGroupOps     = 256
	MaxMemoryPages  = 512      // 32 MB
	PageSize        = 64 << 10 // bytes of a page of Wasm memory
	// MinTimestamp and MaxTimestamp are the years 1 and 9999.
	MinTimestamp int64 = -62_135_596_800_000_000
	MaxTimestamp int64 = 253_402_300_799_999_999
)

// HeaderSize is the length of a batch header.
const HeaderSize = 8

// Pack packs a pointer and a length as exports return them.
func Pack(ptr, length uint32) int64 { return int64(uint64(ptr)<<32 | uint64(length)) }

// Unpack splits what an export returned.
func Unpack(v int64) (ptr, length uint32) { return uint32(uint64(v) >> 32), uint32(uint64(v)) }

// TypeName names a value type as manifests do; unknown types are "".
func TypeName(t uint8) string {
	switch t {
	case TypeNull:
		return "null"
	case TypeI64:
		return "i64"
	case TypeF64:
		return "f64"
	case TypeText:
		return "text"
	case TypeBytes:
		return "bytes"
	case TypeBool:
		return "bool"
	case TypeTimestamp:
		return "timestamp"
	case TypeRef:
		return "ref"
	case TypeKey:
		return "key"
	}
	return ""
}

// ParseType returns the type of that manifest name.
func ParseType(name string) (uint8, bool) {
	switch name {
	case "i64":
		return TypeI64, true
	case "f64":
		return TypeF64, true
	case "text":
		return TypeText, true
	case "bytes":
		return TypeBytes, true
	case "bool":
		return TypeBool, true
	case "timestamp":
		return TypeTimestamp, true
	}
	return 0, false
}
