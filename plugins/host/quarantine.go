package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/schema"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// Gate reads a file with the static parser alone: nothing is compiled, and time
// and memory are bounded by the length of the file. An error wraps
// plugin.ErrRefused. Safe in the server's own process, whatever the file is.
func Gate(wasm []byte) error {
	_, _, err := examine(wasm)
	return err
}

// smokeRows is how many sample rows SmokeTest asks for.
const smokeRows = 16

// smokeOps is how many operations it asks for.
const smokeOps = 128

// smokeFuel is for each call of SmokeTest but ls_fill: enough for the dearest
// honest call, and less than a run gives, so that a file which never ends is
// refused within a second or two.
const smokeFuel = 1_000_000_000

// SmokeTest compiles a file and asks it, as a run would, to describe itself, for
// its statements, a few sample rows and one batch; an adapter for what it says
// about errors. It is for a process that may die of it (package quarantine): a
// compiler cannot be stopped. What the guest may do wrong is an error that wraps
// plugin.ErrRefused. A failure that the guest itself reports (ls_error) in any
// call but ls_describe is none: the sample tables are not a run's, and an honest
// plugin may say that they do not suit it.
func SmokeTest(ctx context.Context, wasm []byte) (plugin.Info, error) {
	h, err := New(ctx, Options{Log: zerolog.Nop(), CallFuel: smokeFuel})
	if err != nil {
		return plugin.Info{}, err
	}
	defer func() { _ = h.Close(context.WithoutCancel(ctx)) }()
	info, err := h.Register(ctx, wasm, false)
	if err != nil {
		return plugin.Info{}, err
	}
	if info.Kind == plugin.KindAdapter {
		err = smokeAdapter(ctx, h, info)
	} else {
		err = smokeWorkload(ctx, h, info)
	}
	if err != nil && !errors.Is(err, errReported) {
		return plugin.Info{}, refusal(err)
	}
	return info, nil
}

func smokeAdapter(ctx context.Context, h *Host, info plugin.Info) error {
	a, err := h.Adapter(ctx, info.SHA256)
	if err != nil {
		return err
	}
	var answer plugin.AdapterAnswer
	return a.Call(ctx, plugin.AdapterRequest{Op: plugin.OpClassifyError}, &answer)
}

func smokeWorkload(ctx context.Context, h *Host, info plugin.Info) error {
	p, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		return err
	}
	w := p.(*workload)
	params, complete := defaultParameters(info.Manifest.Parameters)
	if !complete {
		return nil
	}
	declared, err := w.Tables(ctx, params)
	if err != nil {
		return err
	}
	tables := sampleTables(declared)
	list, err := w.Statements(ctx, params, tables)
	if err != nil || len(list) == 0 {
		return err
	}
	first := slices.IndexFunc(declared, func(t plugin.LogicalTable) bool { return !t.Empty })
	if first >= 0 && w.registered.module.shape.has(abi.ExportRows) {
		if _, err := w.Rows(ctx, params, first, 0, smokeRows); ignoreEnd(err) != nil {
			return err
		}
	}
	var frozen []engine.Statement
	for _, s := range list {
		frozen = append(frozen, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: s.SQL["*"], Binds: s.Binds, Columns: s.Columns, Writes: s.Writes})
	}
	stream, err := w.Open(ctx, plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: params, Tables: tables, Pools: poolsFor(ctx, w, params, declared, tables)}, frozen)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	if err := stream.Fill(&plugin.Batch{}, smokeOps); err != nil && !errors.Is(err, plugin.ErrEnded) {
		return err
	}
	return ctx.Err()
}

// defaultParameters are the defaults of a plugin's schema; complete is false when
// it requires more than those.
func defaultParameters(parameters json.RawMessage) (params json.RawMessage, complete bool) {
	if len(parameters) == 0 {
		return json.RawMessage("{}"), true
	}
	compiled, err := schema.Compile(parameters)
	if err != nil {
		return nil, false
	}
	doc := map[string]any{}
	compiled.Complete(doc)
	if len(compiled.Check(doc, "params")) > 0 {
		return nil, false
	}
	params, err = json.Marshal(doc)
	return params, err == nil
}
