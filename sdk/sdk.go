// Package sdk is the Go SDK for Loadstone plugins.
//
// A plugin is a program for wasip1, built as a reactor:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags="-s -w" -o my.wasm .
//
// It implements Workload or Adapter and registers it from an init function of
// its main package (a reactor has no main to run):
//
//	func init() { sdk.ServeWorkload(myWorkload{}) }
//	func main() {}
//
// A guest runs single-threaded and has no files, no network, no environment, a
// clock that does not tell the time, and a random source that is the same in
// every run. What it generates must depend on the OpenRequest alone; sdk/gen has
// a random source and key distributions for that. Everything here compiles
// natively too, so that sdk/sdktest can run a generator under go test.
package sdk

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// Batch takes the operations of a generator. See abi.Batch.
type Batch = abi.Batch

// Workload generates operations.
type Workload interface {
	// Manifest describes the plugin.
	Manifest() Manifest
	// Open starts a stream. The error's text is shown to the user.
	Open(req OpenRequest) (Generator, error)
}

// Generator is one opened stream.
type Generator interface {
	// Fill writes at most max operations (delays count) into b, at least one; none means
	// that the stream has ended. A transaction that begins before max may end past it. Fill
	// should not allocate.
	Fill(b *Batch, max int) error
}

// ErrFeedMe is returned by the Fill of a Feeder that has nothing left to write:
// the host feeds it and asks again.
var ErrFeedMe = errors.New("feed me")

// Feeder is a Generator that issues operations which the host gives it: those of
// the template's workload.feed.
type Feeder interface {
	Generator
	// Feed takes operations in the format of a batch, transactions whole; delays
	// between them are the gaps in time. An empty chunk means that there are no
	// more. The chunk is the Feeder's to keep.
	Feed(chunk []byte) error
}

// StatementLister is a Workload whose statements depend on parameters or tables.
type StatementLister interface {
	// Statements returns the statements in the order in which batches number them.
	Statements(params *jsondoc.Value, tables []Table) ([]Statement, error)
}

// TableLister is a Workload whose tables, or their numbers of rows, depend on
// parameters. The manifest then has those of the default parameters.
type TableLister interface {
	// Tables returns the tables in the order in which Rows numbers them.
	Tables(params *jsondoc.Value) ([]LogicalTable, error)
}

// RowWriter is a Workload that makes sample rows.
type RowWriter interface {
	// Rows writes rows first … first+max-1 of a logical table (its index among the
	// tables); fewer are fine, none means that there are no more. A row depends on
	// the parameters and its number only.
	Rows(params *jsondoc.Value, b *Batch, table int, first int64, max int) error
}

// Adapter describes a table type.
type Adapter interface {
	Manifest() Manifest
	// Call answers one request document by writing one JSON value. The error's
	// text is shown to the user.
	Call(op string, req *jsondoc.Value, answer *jsondoc.Writer) error
}
