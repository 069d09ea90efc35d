package sdk

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// Guest is a plugin as its exports show it: documents and batches in, documents
// and batches out. The Wasm exports and sdktest drive the same Guest. Not safe
// for concurrent use.
type Guest struct {
	workload  Workload
	adapter   Adapter
	generator Generator
	params    *jsondoc.Value
	batch     abi.Batch
	doc       jsondoc.Writer
}

// NewWorkloadGuest wraps a workload.
func NewWorkloadGuest(w Workload) *Guest { return &Guest{workload: w} }

// NewAdapterGuest wraps an adapter.
func NewAdapterGuest(a Adapter) *Guest { return &Guest{adapter: a} }

// Describe returns the manifest.
func (g *Guest) Describe() []byte {
	g.doc.Reset()
	if g.adapter != nil {
		g.adapter.Manifest().Write(&g.doc, "adapter")
	} else {
		m := g.workload.Manifest()
		_, m.tablesVary = g.workload.(TableLister)
		m.Write(&g.doc, "workload")
	}
	return g.doc.Bytes()
}

// Open starts the stream. A request without tables only sets the parameters of
// Rows and starts none.
func (g *Guest) Open(document []byte) error {
	if g.workload == nil {
		return errors.New("an adapter has no stream to open")
	}
	doc, err := jsondoc.Parse(document)
	if err != nil {
		return err
	}
	req := ReadOpenRequest(doc)
	g.params, g.generator = req.Params, nil
	if len(req.Tables) == 0 && len(g.workload.Manifest().Tables) > 0 {
		return nil
	}
	g.generator, err = g.workload.Open(req)
	return err
}

// Fill returns the next batch; an empty one means that the stream has ended.
func (g *Guest) Fill(max int) ([]byte, error) {
	if g.generator == nil {
		return nil, errors.New("the stream is not open")
	}
	g.batch.Reset()
	// What was written before the food ran out is given out first.
	if err := g.generator.Fill(&g.batch, max); err != nil &&
		(err != ErrFeedMe || g.batch.Len() == 0) { //nolint:errorlint // a sentinel of our own, never wrapped
		return nil, err
	}
	if g.batch.Len() == 0 {
		return nil, nil
	}
	return g.batch.Bytes(), nil
}

// Feed gives the stream operations; none means that there are no more.
func (g *Guest) Feed(chunk []byte) error {
	f, ok := g.generator.(Feeder)
	if !ok {
		return errors.New("this workload takes no feed")
	}
	return f.Feed(chunk)
}

// Rows returns sample rows; an empty batch means that there are no more.
func (g *Guest) Rows(table int, first int64, max int) ([]byte, error) {
	w, ok := g.workload.(RowWriter)
	if !ok {
		return nil, errors.New("this workload has no sample rows")
	}
	g.batch.Reset()
	if err := w.Rows(g.params, &g.batch, table, first, max); err != nil {
		return nil, err
	}
	if g.batch.Len() == 0 {
		return nil, nil
	}
	return g.batch.Bytes(), nil
}

// Call answers a request document.
func (g *Guest) Call(document []byte) ([]byte, error) {
	req, err := jsondoc.Parse(document)
	if err != nil {
		return nil, err
	}
	g.doc.Reset()
	op := req.Get("op").Str()
	if g.adapter != nil {
		err := g.adapter.Call(op, req, &g.doc)
		var refusal *RefusalError
		if errors.As(err, &refusal) {
			g.doc.Reset()
			refusal.Write(&g.doc)
			err = nil
		}
		if err != nil {
			return nil, err
		}
		return g.doc.Bytes(), nil
	}
	if lister, ok := g.workload.(TableLister); ok && op == "tables" {
		tables, err := lister.Tables(req.Get("params"))
		if err != nil {
			return nil, err
		}
		WriteTables(g.doc.Object().Key("tables"), tables)
		g.doc.EndObject()
		return g.doc.Bytes(), nil
	}
	if op != "statements" {
		return nil, errors.New("this workload has no operation " + op)
	}
	list := g.workload.Manifest().Statements
	if lister, ok := g.workload.(StatementLister); ok {
		list, err = lister.Statements(req.Get("params"), ReadTables(req.Get("tables")))
		var refusal *RefusalError
		if errors.As(err, &refusal) {
			refusal.Write(&g.doc)
			return g.doc.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
	g.doc.Object().Key("statements")
	WriteStatements(&g.doc, list)
	g.doc.EndObject()
	return g.doc.Bytes(), nil
}
