package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// maxGroupRows is more than a row group has: memory is made for as many before they are read.
const maxGroupRows = 1 << 20

// missingColumn is the place of a column that a segment of an earlier version does not have.
const missingColumn = -1

// The columns that have values in some relations only.
const (
	hasCells = 1 << iota
	hasErrors
	hasWarehouses
	hasLoads
	hasExtremes // of ofCells, where they are wanted
	hasAll      = 0
)

// relationColumns are the columns that have values in a relation.
func relationColumns(relation string) int {
	switch relation {
	case WarehouseSeconds:
		return hasWarehouses
	case LoadSeconds:
		return hasLoads
	case ErrorSeconds:
		return hasErrors
	}
	return hasCells | hasErrors
}

// group is a row group as columns. Its memory is used again for the next one. What has no column in the file, or none
// in the relations of the group, is 0.
type group struct {
	n int

	series, second []int32
	at             []int64
	relation       texts
	labels         [9]texts
	inTransaction  []bool
	warmup         []bool

	operations, errors, rowCount []int64
	latencySchema, latencyOffset []int32
	latencySum, latencyMin       []int64
	latencyMax                   []int64
	counts                       []byte
	countsAt                     []uint32 // one more than there are rows

	state                             texts
	startedClusters, running, queued  []int32
	creditsPerHour                    []float64
	scheduled, dropped, retries       []int64
	connections, targets, waiting     []int32
	rate, cpu, memory, hostCPU, hostM []float64
	memoryBytes                       []int64
}

// texts are a column of texts: an index into the values for each row.
type texts struct {
	index  []int32
	values []string
}

func (t *texts) at(i int) string { return t.values[t.index[i]] }

// column is one of the file, and where a group keeps it.
type column struct {
	name string
	// relations says in which relations it has values.
	relations int
	kind      parquet.Kind
	read      func(*group, *chunk) error
}

func int32s(name string, of int, in func(*group) *[]int32) column {
	return column{name, of, parquet.Int32, func(g *group, c *chunk) (err error) {
		to := in(g)
		*to, err = fixed(c, *to, func(p parquet.Page) []int32 { d := p.Data(); return d.Int32() }, parquet.Value.Int32)
		return err
	}}
}

func int64s(name string, of int, in func(*group) *[]int64) column {
	return column{name, of, parquet.Int64, func(g *group, c *chunk) (err error) {
		to := in(g)
		*to, err = fixed(c, *to, func(p parquet.Page) []int64 { d := p.Data(); return d.Int64() }, parquet.Value.Int64)
		return err
	}}
}

func doubles(name string, of int, in func(*group) *[]float64) column {
	return column{name, of, parquet.Double, func(g *group, c *chunk) (err error) {
		to := in(g)
		*to, err = fixed(c, *to, func(p parquet.Page) []float64 { d := p.Data(); return d.Double() }, parquet.Value.Double)
		return err
	}}
}

func bools(name string, in func(*group) *[]bool) column {
	return column{name, hasAll, parquet.Boolean, func(g *group, c *chunk) (err error) {
		to := in(g)
		*to, err = c.bools(*to)
		return err
	}}
}

func strs(name string, of int, in func(*group) *texts) column {
	return column{name, of, parquet.ByteArray, func(g *group, c *chunk) error { return c.texts(in(g)) }}
}

func label(name string, i int) column {
	return strs(name, hasAll, func(g *group) *texts { return &g.labels[i] })
}

// columns are all of a row but its relation, which says which of the others are read.
func columns() []column {
	return []column{
		int32s("series", hasAll, func(g *group) *[]int32 { return &g.series }),
		int32s("second", hasAll, func(g *group) *[]int32 { return &g.second }),
		int64s("at", hasAll, func(g *group) *[]int64 { return &g.at }),
		label("kind", 0), label("statement_id", 1), label("worker_id", 2), label("error_class", 3), label("error_code", 4),
		label("warehouse", 5), label("warehouse_type", 6), label("warehouse_size", 7), label("node_id", 8),
		bools("in_transaction", func(g *group) *[]bool { return &g.inTransaction }),
		bools("warmup", func(g *group) *[]bool { return &g.warmup }),

		int64s("operations", hasCells, func(g *group) *[]int64 { return &g.operations }),
		int64s("errors", hasErrors, func(g *group) *[]int64 { return &g.errors }),
		int64s("row_count", hasCells, func(g *group) *[]int64 { return &g.rowCount }),
		int32s("latency_schema", hasCells, func(g *group) *[]int32 { return &g.latencySchema }),
		int32s("latency_offset", hasCells, func(g *group) *[]int32 { return &g.latencyOffset }),
		int64s("latency_sum_ns", hasCells, func(g *group) *[]int64 { return &g.latencySum }),
		int64s("latency_min_ns", hasExtremes, func(g *group) *[]int64 { return &g.latencyMin }),
		int64s("latency_max_ns", hasExtremes, func(g *group) *[]int64 { return &g.latencyMax }),
		{"latency_counts", hasCells, parquet.ByteArray, func(g *group, c *chunk) error { return c.bytes(g) }},

		strs("state", hasWarehouses, func(g *group) *texts { return &g.state }),
		int32s("started_clusters", hasWarehouses, func(g *group) *[]int32 { return &g.startedClusters }),
		int32s("running", hasWarehouses, func(g *group) *[]int32 { return &g.running }),
		int32s("queued", hasWarehouses, func(g *group) *[]int32 { return &g.queued }),
		doubles("credits_per_hour", hasWarehouses, func(g *group) *[]float64 { return &g.creditsPerHour }),

		int64s("scheduled", hasLoads, func(g *group) *[]int64 { return &g.scheduled }),
		int64s("dropped", hasLoads, func(g *group) *[]int64 { return &g.dropped }),
		int64s("retries", hasLoads, func(g *group) *[]int64 { return &g.retries }),
		int32s("connections", hasLoads, func(g *group) *[]int32 { return &g.connections }),
		int32s("target_connections", hasLoads, func(g *group) *[]int32 { return &g.targets }),
		int32s("waiting", hasLoads, func(g *group) *[]int32 { return &g.waiting }),
		doubles("target_operations_per_second", hasLoads, func(g *group) *[]float64 { return &g.rate }),
		doubles("cpu_ratio", hasLoads, func(g *group) *[]float64 { return &g.cpu }),
		doubles("memory_ratio", hasLoads, func(g *group) *[]float64 { return &g.memory }),
		doubles("host_cpu_ratio", hasLoads, func(g *group) *[]float64 { return &g.hostCPU }),
		doubles("host_memory_ratio", hasLoads, func(g *group) *[]float64 { return &g.hostM }),
		int64s("memory_bytes", hasLoads, func(g *group) *[]int64 { return &g.memoryBytes }),
	}
}

// readGroup reads the columns of a row group in which the relations that it holds have values, and says which these
// are; none where it holds nothing that is wanted.
func (s *File) readGroup(i int, q *Query, g *group) (of int, err error) {
	defer recoverDamage(&err)
	chunks := s.pq.RowGroups()[i].ColumnChunks()
	if n := s.pq.RowGroups()[i].NumRows(); n > maxGroupRows {
		return 0, fmt.Errorf("a row group of %d rows", n)
	}
	g.n = int(s.pq.RowGroups()[i].NumRows())
	if err := (&chunk{name: "relation", n: g.n, column: chunks[s.relation]}).texts(&g.relation); err != nil {
		return 0, err
	}
	held := make([]bool, len(g.relation.values))
	for _, v := range g.relation.index {
		held[v] = true
	}
	for v, relation := range g.relation.values {
		if held[v] && q.wantsRelation(relation) {
			of |= relationColumns(relation)
		}
	}
	if of == 0 {
		return 0, nil
	}
	if of&hasCells != 0 && !q.NoExtremes {
		of |= hasExtremes
	}
	for j, c := range s.columns {
		if c.relations != hasAll && of&c.relations == 0 {
			continue
		}
		chunk := &chunk{name: c.name, n: g.n}
		if s.places[j] != missingColumn {
			chunk.column = chunks[s.places[j]]
		}
		if err := c.read(g, chunk); err != nil {
			return 0, fmt.Errorf("the column %s: %w", c.name, err)
		}
	}
	return of, nil
}

// row fills in a row, where columns have been read of so many relations. r has the row before: of one series every
// row has the same values, the labels too.
func (g *group) row(i int, of int, r *Row) {
	if i == 0 || g.series[i] != g.series[i-1] {
		*r = Row{Series: g.series[i], Labels: Labels{Relation: g.relation.at(i), Kind: g.labels[0].at(i),
			StatementID: g.labels[1].at(i), InTransaction: g.inTransaction[i], WorkerID: g.labels[2].at(i),
			ErrorClass: g.labels[3].at(i), ErrorCode: g.labels[4].at(i), Warehouse: g.labels[5].at(i),
			WarehouseType: g.labels[6].at(i), WarehouseSize: g.labels[7].at(i), Warmup: g.warmup[i],
			NodeID: g.labels[8].at(i)}}
	}
	r.Second, r.At = g.second[i], g.at[i]
	if of &= relationColumns(r.Relation) | hasExtremes; of&hasErrors != 0 {
		r.Errors = g.errors[i]
	}
	if of&hasCells != 0 {
		r.Operations, r.RowCount = g.operations[i], g.rowCount[i]
		r.LatencySchema, r.LatencyOffset, r.LatencySumNs = g.latencySchema[i], g.latencyOffset[i], g.latencySum[i]
		r.LatencyCounts = g.counts[g.countsAt[i]:g.countsAt[i+1]]
		if of&hasExtremes != 0 {
			r.LatencyMinNs, r.LatencyMaxNs = g.latencyMin[i], g.latencyMax[i]
		}
	}
	if of&hasWarehouses != 0 {
		r.State, r.StartedClusters, r.Running = g.state.at(i), g.startedClusters[i], g.running[i]
		r.Queued, r.CreditsPerHour = g.queued[i], g.creditsPerHour[i]
	}
	if of&hasLoads != 0 {
		r.setLoad(&rollup.Load{Counts: rollup.Counts{Scheduled: g.scheduled[i], Dropped: g.dropped[i],
			Retries: g.retries[i]}, Connections: int(g.connections[i]), TargetConnections: int(g.targets[i]),
			Waiting: int(g.waiting[i]), TargetRate: g.rate[i], CPU: g.cpu[i], Memory: g.memory[i],
			MemoryBytes: g.memoryBytes[i], HostCPU: g.hostCPU[i], HostMemory: g.hostM[i]})
	}
}

// chunk is a column of a row group with n rows; of is nil where the file does not have it.
type chunk struct {
	name   string
	n      int
	column parquet.ColumnChunk
}

// pages calls fn for every page.
func (c *chunk) pages(fn func(parquet.Page) error) (err error) {
	pages := c.column.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	rows := 0
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			if rows != c.n {
				return fmt.Errorf("%d values for %d rows", rows, c.n)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if rows += int(page.NumValues()); rows > c.n {
			err = errors.New("more values than rows")
		} else {
			err = fn(page)
		}
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

var errEntries = errors.New("an index that is not in the dictionary")

// zeros are n of them in the memory of dst.
func zeros[T any](dst []T, n int) []T {
	dst = slices.Grow(dst[:0], n)[:n]
	clear(dst)
	return dst
}

// fixed reads values of a fixed size into the memory of dst.
func fixed[T any](c *chunk, dst []T, plain func(parquet.Page) []T, value func(parquet.Value) T) ([]T, error) {
	if c.column == nil {
		return zeros(dst, c.n), nil
	}
	dst = slices.Grow(dst[:0], c.n)
	err := c.pages(func(page parquet.Page) error {
		dict := page.Dictionary()
		if dict == nil {
			dst = append(dst, plain(page)...)
			return nil
		}
		entries := make([]T, dict.Len())
		for i := range entries {
			entries[i] = value(dict.Index(int32(i)))
		}
		data := page.Data()
		for _, i := range data.Int32() {
			if uint(i) >= uint(len(entries)) {
				return errEntries
			}
			dst = append(dst, entries[i])
		}
		return nil
	})
	return checkCount(dst, c.n, err)
}

// checkCount refuses a column whose pages had fewer values than they said.
func checkCount[T any](dst []T, n int, err error) ([]T, error) {
	if err == nil && len(dst) != n {
		err = fmt.Errorf("%d values for %d rows", len(dst), n)
	}
	return dst, err
}

func (c *chunk) bools(dst []bool) ([]bool, error) {
	if c.column == nil {
		return zeros(dst, c.n), nil
	}
	dst = slices.Grow(dst[:0], c.n)
	err := c.pages(func(page parquet.Page) error {
		data := page.Data()
		packed := data.Boolean()
		for i := range int(page.NumValues()) {
			dst = append(dst, packed[i/8]>>(i%8)&1 == 1)
		}
		return nil
	})
	return checkCount(dst, c.n, err)
}

// texts reads a column of texts with a dictionary.
func (c *chunk) texts(t *texts) error {
	t.values = t.values[:0]
	if c.column == nil {
		t.index, t.values = zeros(t.index, c.n), append(t.values, "")
		return nil
	}
	t.index = slices.Grow(t.index[:0], c.n)
	err := c.pages(func(page parquet.Page) error {
		base := int32(len(t.values))
		if dict := page.Dictionary(); dict != nil {
			for i := range dict.Len() {
				t.values = append(t.values, string(dict.Index(int32(i)).ByteArray()))
			}
			data := page.Data()
			first, n := len(t.index), uint32(dict.Len())
			t.index = append(t.index, data.Int32()...)
			for i := range t.index[first:] {
				if uint32(t.index[first+i]) >= n {
					return errEntries
				}
				t.index[first+i] += base
			}
			return nil
		}
		// Written without one, by another writer.
		content, offsets, err := arrays(page)
		for i := range max(len(offsets)-1, 0) {
			t.index = append(t.index, base+int32(i))
			t.values = append(t.values, strings.Clone(string(content[offsets[i]:offsets[i+1]])))
		}
		return err
	})
	t.index, err = checkCount(t.index, c.n, err)
	return err
}

// arrays are the byte arrays of a page, and where each begins; the last one ends at the last of these.
func arrays(page parquet.Page) (content []byte, offsets []uint32, err error) {
	data := page.Data()
	content, offsets = data.ByteArray()
	for i, at := range offsets {
		if int(at) > len(content) || i > 0 && at < offsets[i-1] {
			return nil, nil, errors.New("byte arrays that overlap")
		}
	}
	return content, offsets, nil
}

// bytes reads the counts of histograms.
func (c *chunk) bytes(g *group) error {
	g.counts, g.countsAt = g.counts[:0], append(slices.Grow(g.countsAt[:0], c.n+1), 0)
	if c.column == nil {
		g.countsAt = zeros(g.countsAt, c.n+1)
		return nil
	}
	err := c.pages(func(page parquet.Page) error {
		if page.Dictionary() != nil {
			return errors.New("histograms with a dictionary")
		}
		content, offsets, err := arrays(page)
		if err != nil || len(offsets) == 0 {
			return err
		}
		base := uint32(len(g.counts)) - offsets[0]
		g.counts = append(g.counts, content[offsets[0]:offsets[len(offsets)-1]]...)
		for _, at := range offsets[1:] {
			g.countsAt = append(g.countsAt, base+at)
		}
		return nil
	})
	// base wraps around, as at does.
	base := uint32(0)
	for _, at := range g.countsAt {
		if at < base || int(at) > len(g.counts) {
			return errors.New("byte arrays that overlap")
		}
		base = at
	}
	g.countsAt, err = checkCount(g.countsAt, c.n+1, err)
	return err
}
