package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/manifest"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// workload is a compiled workload plugin.
type workload struct {
	host       *Host
	registered *registered
}

var _ plugin.Workload = (*workload)(nil)

func (w *workload) Info() plugin.Info { return w.registered.info }

type tablesRequest struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
}

// Tables asks ls_call of a plugin whose tables vary; others have those of their manifest.
func (w *workload) Tables(ctx context.Context, params json.RawMessage) ([]plugin.LogicalTable, error) {
	return w.registered.tables(ctx, params)
}

func (r *registered) tables(ctx context.Context, params json.RawMessage) ([]plugin.LogicalTable, error) {
	c, declared := r.module, r.info.Manifest
	if !declared.TablesVary {
		return declared.Tables, nil
	}
	if !c.shape.has(abi.ExportCall) {
		return nil, fail(plugin.ErrFailed,
			"Plugin %s says that its tables vary with its parameters, but it does not export %s.", c.name, abi.ExportCall)
	}
	doc, err := json.Marshal(tablesRequest{Op: "tables", Params: orEmpty(params)})
	if err != nil {
		return nil, fmt.Errorf("encoding a request to plugin %s: %w", c.name, err)
	}
	got, err := r.ask(ctx, doc)
	if err != nil {
		return nil, err
	}
	list, err := manifest.Tables(got)
	if err != nil {
		return nil, answerUnusable(c, "tables", "list of tables", err)
	}
	return list, nil
}

// answerUnusable is the error of an answer that cannot be read, or not be used.
func answerUnusable(c *compiled, op, what string, err error) error {
	if errors.As(err, new(*manifest.MalformedError)) {
		return answerError(c, op, err)
	}
	return fail(plugin.ErrFailed, "Plugin %s answered a %s that cannot be used: %s.", c.name, what, err)
}

type statementsRequest struct {
	Op     string          `json:"op"`
	Params json.RawMessage `json:"params"`
	Tables []engine.Table  `json:"tables"`
}

// Statements asks ls_call; a plugin without it, or with an empty answer, has those of its manifest.
func (w *workload) Statements(ctx context.Context, params json.RawMessage, tables []engine.Table) ([]plugin.Statement,
	error) {
	c := w.registered.module
	declared := w.registered.info.Manifest.Statements
	if !c.shape.has(abi.ExportCall) {
		return declared, nil
	}
	doc, err := json.Marshal(statementsRequest{Op: "statements", Params: orEmpty(params), Tables: orNone(tables)})
	if err != nil {
		return nil, fmt.Errorf("encoding a request to plugin %s: %w", c.name, err)
	}
	got, err := w.registered.ask(ctx, doc)
	if err != nil {
		return nil, err
	}
	refused := new(manifest.RefusedError)
	list, given, err := manifest.Statements(got, tables)
	switch {
	case errors.As(err, &refused):
		return nil, &engine.Error{
			Code:    engine.CodeInvalid,
			Message: fmt.Sprintf("The workload %s refuses: %s.", c.name, strings.TrimRight(refused.Message, ".")),
			Fields: []engine.FieldError{
				{Field: refused.Field, Message: refused.Message, Hint: refused.Hint},
			},
			Cause: plugin.ErrFailed,
		}
	case err != nil:
		return nil, answerUnusable(c, "statements", "statement list", err)
	case !given:
		return declared, nil
	}
	return list, nil
}

func orEmpty(params json.RawMessage) json.RawMessage {
	if len(params) == 0 || string(params) == "null" {
		return json.RawMessage("{}")
	}
	return params
}

func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// guestPool is a pool as a guest sees it: of the packed keys it knows how many there are.
type guestPool struct {
	engine.Pool
	Keys *guestKeys `json:"keys,omitempty"`
}

type guestKeys struct {
	Columns []string           `json:"columns"`
	Types   []engine.ValueType `json:"types"`
	Count   int                `json:"count"`
}

func openDocument(req plugin.OpenRequest) ([]byte, error) {
	doc := struct {
		plugin.OpenRequest
		Pools  []guestPool   `json:"pools"`
		Values []engine.Pool `json:"values,omitempty"`
		Free   []engine.Pool `json:"free,omitempty"`
	}{OpenRequest: req, Pools: []guestPool{}}
	doc.Params, doc.Tables = orEmpty(req.Params), orNone(req.Tables)
	for _, p := range req.Pools {
		p.Rows = orNone(p.Rows)
		// Guests that know of no samples of values do not take them for keys, nor parts of rows for whole ones.
		if p.Free != nil {
			doc.Free = append(doc.Free, p)
			continue
		}
		if p.Values {
			doc.Values = append(doc.Values, p)
			continue
		}
		pool := guestPool{Pool: p}
		if k := p.Keys; k.Len() > 0 {
			pool.Keys = &guestKeys{Columns: k.Columns(), Types: k.Types(), Count: k.Len()}
		}
		doc.Pools = append(doc.Pools, pool)
	}
	return json.Marshal(doc)
}

// Open starts a stream on an instance of its own.
func (w *workload) Open(ctx context.Context, req plugin.OpenRequest, list []engine.Statement) (plugin.Stream, error) {
	c := w.registered.module
	f, err := freezeStatements(list)
	if err != nil {
		return nil, fmt.Errorf("opening a stream of plugin %s: %w", c.name, err)
	}
	for _, p := range req.Pools {
		if !p.Values { // as the guest counts pools
			f.keys = append(f.keys, p.Keys)
		}
	}
	doc, err := openDocument(req)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to plugin %s: %w", c.name, err)
	}
	i, err := c.instantiate(ctx, w.host)
	if err != nil {
		return nil, err
	}
	i.log.mu.Lock()
	i.log.sink = req.Log
	i.log.mu.Unlock()
	if err := i.open(ctx, doc); err != nil {
		i.close()
		return nil, err
	}
	return &stream{instance: i, frozen: f, feed: req.Feed}, nil
}

// stream is one opened instance.
type stream struct {
	instance *instance
	frozen   *frozenStatements
	// emptyBatches is how many batches in a row held nothing but delays.
	emptyBatches int
	ended        bool
	failed       error
	feed         plugin.Feed
	feedBatch    feedBatch
	// refs are those of a Fill: a load that was abandoned may be in one when the stream is closed.
	refs refCount
}

var _ Metered = (*stream)(nil)

// Metered is a stream of this host, which knows what it costs.
type Metered interface {
	plugin.Stream
	// FuelSpent is what the guest's last call took, in units of about one instruction.
	FuelSpent() int64
	// MemoryBytes is how large the guest's memory is.
	MemoryBytes() int64
}

// FuelSpent implements Metered.
func (s *stream) FuelSpent() int64 { return s.instance.tank.given - s.instance.tank.remaining() }

// MemoryBytes implements Metered.
func (s *stream) MemoryBytes() int64 { return int64(s.instance.memory.Size()) }

// Fill takes the next batch.
func (s *stream) Fill(b *plugin.Batch, limit int) error {
	b.Reset()
	if !s.refs.acquire() {
		return fmt.Errorf("the stream is closed: %w", plugin.ErrEnded)
	}
	defer func() {
		if s.refs.release() {
			_ = s.free() // whoever closed the stream does not wait for it
		}
	}()
	switch {
	case s.failed != nil:
		return s.failed
	case s.ended:
		return plugin.ErrEnded
	}
	limit = max(1, min(limit, abi.MaxBatchOps))
	i := s.instance
	v, err := i.call(i.fillFn, abi.ExportFill, fuelFor(limit), uint64(limit))
	for fed := 0; err == nil && int64(v) == abi.FillFeedMe; fed++ {
		if err = s.feedOnce(fed); err == nil {
			v, err = i.call(i.fillFn, abi.ExportFill, fuelFor(limit), uint64(limit))
		}
	}
	if err == nil {
		err = s.take(b, int64(v), limit)
	}
	if err != nil && !errors.Is(err, plugin.ErrEnded) {
		b.Reset()
		s.failed = err
		i.close()
	}
	return err
}

func (s *stream) take(b *plugin.Batch, v int64, limit int) error {
	i := s.instance
	if v == abi.FillError {
		return i.reported(abi.ExportFill)
	}
	ptr, n := abi.Unpack(v)
	if n == 0 {
		s.ended = true
		return plugin.ErrEnded
	}
	if n > abi.MaxBatchBytes {
		return invalid(i, fmt.Errorf("it has %d bytes, the limit is %d", n, abi.MaxBatchBytes))
	}
	var ok bool
	if b.Data, ok = i.appendMemory(b.Data[:0], ptr, n); !ok {
		return invalid(i, fmt.Errorf("it lies at %d with %d bytes, outside the plugin's memory", ptr, n))
	}
	if err := s.frozen.Decode(b, limit); err != nil {
		return invalid(i, err)
	}
	if b.Ops[len(b.Ops)-1].Statement < abi.FirstControl || !onlyDelays(b.Ops) {
		s.emptyBatches = 0
	} else if s.emptyBatches++; s.emptyBatches > maxEmptyBatches {
		return invalid(i, fmt.Errorf("it holds only delays, and so did the %d before it", maxEmptyBatches))
	}
	return nil
}

// maxEmptyBatches bounds batches without an operation to execute: whoever waits for one
// would ask for ever.
const maxEmptyBatches = 64

func onlyDelays(ops []plugin.Op) bool {
	return !slices.ContainsFunc(ops, func(op plugin.Op) bool { return op.Statement < abi.FirstControl })
}

func invalid(i *instance, err error) error {
	return fail(plugin.ErrInvalidBatch, "Plugin %s returned a batch that is not valid from %s: %s.", i.module.name,
		abi.ExportFill, err)
}

// Close frees the instance; closing twice is fine. A Fill under way ends at the guest's next answer, and
// frees it then.
func (s *stream) Close() error {
	s.instance.close()
	if s.refs.close() {
		return s.free()
	}
	return nil
}

// free ends what the instance was fed from. Nobody is in Fill, and nobody will be.
func (s *stream) free() error {
	if s.feed == nil {
		return nil
	}
	return s.feed.Close()
}

// Rows writes sample rows.
func (w *workload) Rows(ctx context.Context, params json.RawMessage, table int, first int64, limit int) (plugin.Rows,
	error) {
	if !w.registered.module.shape.has(abi.ExportRows) {
		return nil, fail(plugin.ErrFailed, "Plugin %s has no sample rows: it does not export ls_rows.",
			w.registered.module.name)
	}
	return w.registered.samples.take(ctx, orEmpty(params), table, first, max(1, min(limit, abi.MaxRowsPerCall)))
}

// idleTime is how long an instance that nobody uses is kept.
const idleTime = 20 * time.Second

// sampleInstance keeps one instance for sample rows, opened with the parameters of the last request.
type sampleInstance struct {
	host  *Host
	owner *registered

	mu       sync.Mutex
	instance *instance
	params   string
	// tables are those of params.
	tables []plugin.LogicalTable
	idle   *time.Timer
}

func (s *sampleInstance) take(
	ctx context.Context,
	params json.RawMessage,
	table int,
	first int64,
	limit int,
) (plugin.Rows,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance != nil && s.params != string(params) {
		s.closeLocked()
	}
	if s.instance == nil {
		if err := s.openLocked(ctx, params); err != nil {
			return nil, err
		}
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	s.idle = time.AfterFunc(idleTime, s.close)
	i := s.instance
	if table < 0 || table >= len(s.tables) {
		return nil, fail(plugin.ErrFailed, "Plugin %s has no table %d.", i.module.name, table)
	}
	v, err := i.export(ctx, abi.ExportRows, uint64(uint32(table)), uint64(first), uint64(uint32(limit)))
	if err != nil {
		s.closeLocked()
		return nil, err
	}
	if int64(v) == abi.FillError {
		err = i.reported(abi.ExportRows)
		s.closeLocked()
		return nil, err
	}
	ptr, n := abi.Unpack(int64(v))
	if n == 0 {
		return nil, plugin.ErrEnded
	}
	data, ok := i.appendMemory(nil, ptr, min(n, abi.MaxBatchBytes))
	if !ok || n > abi.MaxBatchBytes {
		s.closeLocked()
		return nil, fail(plugin.ErrInvalidBatch,
			"Plugin %s returned sample rows that are not valid from %s: they lie at %d with %d bytes, the limit is %d.",
			i.module.name, abi.ExportRows, ptr, n, abi.MaxBatchBytes)
	}
	rows, err := decodeRows(data, s.tables[table].Columns, limit)
	if err != nil {
		s.closeLocked()
		return nil, fail(plugin.ErrInvalidBatch, "Plugin %s returned sample rows that are not valid from %s: %s.",
			i.module.name, abi.ExportRows, err)
	}
	return rows, nil
}

// openLocked starts an instance and tells it the parameters through ls_open. There is no
// table yet, so a plugin may refuse: it is then opened with its own empty tables,
// and at last not at all.
func (s *sampleInstance) openLocked(ctx context.Context, params json.RawMessage) error {
	declared, err := s.owner.tables(ctx, params)
	if err != nil {
		return err
	}
	s.tables = declared
	var logical []engine.Table
	for _, t := range declared {
		table := engine.Table{Name: t.Name, PhysicalName: t.Name, Key: orNone(t.Key), RowsExact: true,
			Columns: []engine.Column{}}
		for _, c := range t.Columns {
			table.Columns = append(table.Columns,
				engine.Column{Name: c.Name, Type: c.Type, DBType: string(c.Type), Nullable: c.Nullable})
		}
		logical = append(logical, table)
	}
	var refused error
	for _, tables := range [][]engine.Table{nil, logical} {
		doc, err := openDocument(plugin.OpenRequest{KeySlots: 1, Params: params, Tables: tables})
		if err != nil {
			return fmt.Errorf("encoding a request to plugin %s: %w", s.owner.module.name, err)
		}
		i, err := s.owner.module.instantiate(ctx, s.host)
		if err != nil {
			return err
		}
		if refused = i.open(ctx, doc); refused == nil {
			s.instance, s.params = i, string(params)
			return nil
		}
		i.close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	i, err := s.owner.module.instantiate(ctx, s.host)
	if err != nil {
		return err
	}
	s.host.log.Debug().Str("plugin", s.owner.module.name).Err(refused).
		Msg("plugin is asked for sample rows without being opened")
	s.instance, s.params = i, string(params)
	return nil
}

func (s *sampleInstance) closeLocked() {
	if s.instance != nil {
		s.instance.close()
		s.instance = nil
	}
}

func (s *sampleInstance) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Stop()
	}
	s.closeLocked()
}
