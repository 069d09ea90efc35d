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
type Plugin struct {
	guest *sdk.Guest
	// columns are how many each statement declares.
	columns []int
}

// Workload emulates a workload plugin.
func Workload(w sdk.Workload) *Plugin { return &Plugin{guest: sdk.NewWorkloadGuest(w)} }

// Adapter emulates an adapter plugin.
func Adapter(a sdk.Adapter) *Plugin { return &Plugin{guest: sdk.NewAdapterGuest(a)} }

// Describe reads the manifest into v.
func (p *Plugin) Describe(v any) error { return json.Unmarshal(p.guest.Describe(), v) }

// Open opens the stream with the document of ls_open.
func (p *Plugin) Open(request any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	if err := p.guest.Open(doc); err != nil {
		return err
	}
	return p.readStatements(doc)
}

// readStatements asks for the statements as the host does before it opens a stream.
func (p *Plugin) readStatements(open []byte) error {
	var request struct {
		Op     string          `json:"op"`
		Params json.RawMessage `json:"params,omitempty"`
		Tables json.RawMessage `json:"tables,omitempty"`
	}
	if err := json.Unmarshal(open, &request); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	request.Op = "statements"
	var answer struct {
		Statements []struct {
			Columns []string `json:"columns"`
		} `json:"statements"`
	}
	p.columns = nil
	err := p.Call(request, &answer)
	if tables := string(request.Tables); err != nil && (tables == "" || tables == "[]" || tables == "null") {
		return nil // such a request sets the parameters of Rows and opens no stream
	}
	if err != nil {
		return fmt.Errorf("asking for the statements: %w", err)
	}
	for _, s := range answer.Statements {
		p.columns = append(p.columns, len(s.Columns))
	}
	return nil
}

// Fill returns the next operations, decoded; they stay valid. It checks what the
// host checks of transactions and of the number of operations.
func (p *Plugin) Fill(max int) ([]abi.Op, error) {
	b, err := p.guest.Fill(max)
	ops, err := decode(b, err)
	if err == nil {
		err = abi.CheckGroups(ops, max, func(statement uint16) int {
			if int(statement) < len(p.columns) {
				return p.columns[statement]
			}
			return 0
		})
	}
	return ops, err
}

// Feed gives the stream operations, as a batch; nil when there are no more. Fill
// returns sdk.ErrFeedMe to ask for it.
func (p *Plugin) Feed(batch []byte) error { return p.guest.Feed(bytes.Clone(batch)) }

// Rows returns sample rows, decoded. Open sets their parameters.
func (p *Plugin) Rows(table int, first int64, max int) ([]abi.Op, error) {
	b, err := p.guest.Rows(table, first, max)
	ops, err := decode(b, err)
	if err == nil && len(ops) > max {
		err = fmt.Errorf("%d rows, asked for %d", len(ops), max)
	}
	return ops, err
}

func decode(b []byte, err error) ([]abi.Op, error) {
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, ErrEnded
	}
	return abi.Decode(bytes.Clone(b))
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
