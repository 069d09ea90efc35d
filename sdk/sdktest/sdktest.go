// Package sdktest runs plugins natively, so that authors can go test a generator
// without building or loading a module. It drives the code that the Wasm exports
// drive; only the sandbox is missing.
package sdktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// ErrEnded is returned by Fill and Rows at the end.
var ErrEnded = errors.New("ended")

// Plugin is a plugin in the native emulator. Documents are anything that
// encoding/json writes, or json.RawMessage.
type Plugin struct{ guest *sdk.Guest }

// Workload emulates a workload plugin.
func Workload(w sdk.Workload) *Plugin { return &Plugin{sdk.NewWorkloadGuest(w)} }

// Adapter emulates an adapter plugin.
func Adapter(a sdk.Adapter) *Plugin { return &Plugin{sdk.NewAdapterGuest(a)} }

// Describe reads the manifest into v.
func (p *Plugin) Describe(v any) error { return json.Unmarshal(p.guest.Describe(), v) }

// Open opens the stream with the document of ls_open.
func (p *Plugin) Open(request any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	return p.guest.Open(doc)
}

// Fill returns the next operations, decoded; they stay valid.
func (p *Plugin) Fill(max int) ([]abi.Op, error) {
	b, err := p.guest.Fill(max)
	return decode(b, err, max)
}

// Rows returns sample rows, decoded. Open sets their parameters.
func (p *Plugin) Rows(table int, first int64, max int) ([]abi.Op, error) {
	b, err := p.guest.Rows(table, first, max)
	return decode(b, err, max)
}

func decode(b []byte, err error, max int) ([]abi.Op, error) {
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, ErrEnded
	}
	ops, err := abi.Decode(bytes.Clone(b))
	if err == nil && len(ops) > max {
		err = fmt.Errorf("%d operations, asked for %d", len(ops), max)
	}
	return ops, err
}

// Call sends a request document and reads the answer into v.
func (p *Plugin) Call(request, v any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	b, err := p.guest.Call(doc)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
