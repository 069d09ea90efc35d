//go:build wasip1

//nolint:unused // the linter does not know go:wasmexport
package sdk

import (
	"runtime/debug"
	"unsafe"

	"github.com/loadstone-db/loadstone/sdk/abi"
)

var (
	guest *Guest
	// input holds what the host writes between ls_alloc and the call that takes it.
	input   []byte
	lastErr []byte
)

// memoryGoal is where the collector begins to work hard. Left to itself it lets
// the heap grow to twice what is live, and a large answer of the database then
// runs into the host's limit, which ends the instance.
const memoryGoal = abi.MaxMemoryPages * abi.PageSize * 5 / 8

// ServeWorkload makes w the plugin of this module. Call it once, from init.
func ServeWorkload(w Workload) {
	debug.SetMemoryLimit(memoryGoal)
	guest = NewWorkloadGuest(w)
}

// ServeAdapter makes a the plugin of this module. Call it once, from init.
func ServeAdapter(a Adapter) {
	debug.SetMemoryLimit(memoryGoal)
	guest = NewAdapterGuest(a)
}

//go:wasmimport ls log
func hostLog(level int32, ptr unsafe.Pointer, length int32)

// Log writes a line to the plugin's log; level is one of abi.LogDebug … abi.LogError.
func Log(level int32, message string) {
	if len(message) > 0 {
		hostLog(level, unsafe.Pointer(unsafe.StringData(message)), int32(len(message)))
	}
}

func pack(b []byte) int64 {
	if len(b) == 0 {
		return 0
	}
	return abi.Pack(uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint32(len(b)))
}

func answer(b []byte, err error) int64 {
	if err == ErrFeedMe { //nolint:errorlint // a sentinel of our own, never wrapped
		return abi.FillFeedMe
	}
	if err != nil {
		lastErr = []byte(err.Error())
		return abi.FillError
	}
	return pack(b)
}

//go:wasmexport ls_abi
func lsABI() int32 { return abi.Version }

//go:wasmexport ls_describe
func lsDescribe() int64 {
	if guest == nil {
		lastErr = []byte("the plugin registered nothing: call sdk.ServeWorkload or sdk.ServeAdapter from init")
		return abi.FillError
	}
	return pack(guest.Describe())
}

//go:wasmexport ls_alloc
func lsAlloc(n int32) int32 {
	if n <= 0 || n > abi.MaxDocument {
		return 0
	}
	input = make([]byte, n)
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(input))))
}

func take(length int32) []byte {
	doc := input[:min(int(length), len(input))]
	input = nil
	return doc
}

//go:wasmexport ls_open
func lsOpen(_, length int32) int32 {
	if err := guest.Open(take(length)); err != nil {
		lastErr = []byte(err.Error())
		return 1
	}
	return 0
}

//go:wasmexport ls_fill
func lsFill(max int32) int64 { return answer(guest.Fill(int(max))) }

//go:wasmexport ls_feed
func lsFeed(_, length int32) int32 {
	if err := guest.Feed(take(length)); err != nil {
		lastErr = []byte(err.Error())
		return 1
	}
	return 0
}

//go:wasmexport ls_rows
func lsRows(table int32, first int64, max int32) int64 {
	return answer(guest.Rows(int(table), first, int(max)))
}

//go:wasmexport ls_call
func lsCall(_, length int32) int64 { return answer(guest.Call(take(length))) }

//go:wasmexport ls_error
func lsError() int64 { return pack(lastErr) }
