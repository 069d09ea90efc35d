package record

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/loadstone-db/loadstone/engine"
)

// statementNames is the dictionary of the statement column: the statements, the
// transactions, BEGIN, COMMIT and ROLLBACK. It ends with "", for executions whose statement index is outside the list.
type statementNames struct {
	values []string
	index  []int32 // raw index → index into values
	// transactions does the same for transactions, by their first statement, and
	// controls for BEGIN, COMMIT and ROLLBACK.
	transactions []int32
	controls     [3]int32
}

// encoder turns the columns of a row group into the bytes of its column chunks.
// It owns its buffers; nothing is allocated per execution.
type encoder struct {
	defs       [numColumns]columnDef
	run        string
	result     string
	worker     string
	statements statementNames
	errorOf    func(id uint32) engine.ExecutionError

	out     []byte // the row group's bytes
	base    int64  // file offset of out[0]
	chunks  []format.ColumnChunk
	values  []byte // one encoder's result, before it is appended to out
	indexes []int32
	levels  []uint8
	conns   []int32  // connection id → dictionary index + 1
	connIDs []uint32 // dictionary of the row group
	errors  errorIndex
	err     error // the first one of this row group
}

func newEncoder(opts WriterOptions) *encoder {
	e := &encoder{defs: columnDefs(), run: opts.RunID, result: opts.ResultID, worker: opts.WorkerID, errorOf: opts.Errors}
	known := map[string]int32{}
	place := func(name string) int32 {
		i, ok := known[name]
		if !ok {
			i = int32(len(e.statements.values))
			known[name] = i
			e.statements.values = append(e.statements.values, name)
		}
		return i
	}
	for _, s := range opts.Statements {
		e.statements.index = append(e.statements.index, place(s.ID))
		e.statements.transactions = append(e.statements.transactions, place(cmp.Or(s.Transaction, s.ID)))
	}
	for i := range e.statements.controls {
		e.statements.controls[i] = place(engine.ControlName(engine.FirstControl + uint16(i)))
	}
	e.statements.values = append(e.statements.values, "")
	return e
}

// encode returns the bytes of the row group, valid until the next call, and its metadata.
func (e *encoder) encode(c *columns, base int64, ordinal int) ([]byte, format.RowGroup, error) {
	e.out, e.base, e.err = e.out[:0], base, nil
	// The metadata outlives the call: it belongs to the file's footer.
	e.chunks = make([]format.ColumnChunk, 0, numColumns)
	n := c.n

	e.constant(ColRunID, e.run, n)
	e.constant(ColResultID, e.result, n)
	e.constant(ColWorkerID, e.worker, n)
	e.connections(c)
	e.delta32(ColSeq, c.seq[:n])
	e.delta32(ColStep, c.step[:n])
	e.dictionary(ColPhase, []string{string(engine.PhaseMeasurement), string(engine.PhaseWarmup)}, c.warmup[:n])
	e.warmup(c)
	e.kinds(c)
	e.statementIDs(c)
	e.times(c)
	e.durations(c)
	e.delta32(ColRows, c.rows[:n])
	e.success(c)
	e.errorColumns(c)
	e.delta32(ColRetries, c.retries[:n])
	e.queryIDs(c)
	e.positions(c)
	e.rolledBack(c)
	e.decodes(c)
	if e.err != nil {
		return nil, format.RowGroup{}, fmt.Errorf("encoding row group: %w", e.err)
	}
	return e.out, format.RowGroup{
		Columns:             e.chunks,
		TotalByteSize:       int64(len(e.out)),
		TotalCompressedSize: int64(len(e.out)),
		NumRows:             int64(n),
		FileOffset:          base,
		Ordinal:             int16(ordinal),
	}, nil
}

// begin starts a column chunk and end closes it; between them come an optional
// dictionary page and one data page.
func (e *encoder) begin() int64 { return e.base + int64(len(e.out)) }

func (e *encoder) end(col Column, start, dictionary, data int64, values int, encodings []format.Encoding,
	stats format.Statistics) {
	size := e.base + int64(len(e.out)) - start
	d := &e.defs[col]
	e.chunks = append(e.chunks, format.ColumnChunk{MetaData: format.ColumnMetaData{
		Type: d.typ, Encoding: encodings, PathInSchema: []string{d.name}, Codec: format.Uncompressed,
		NumValues: int64(values), TotalUncompressedSize: size, TotalCompressedSize: size,
		DataPageOffset: data, DictionaryPageOffset: dictionary, Statistics: stats,
	}})
}

// setErr remembers the first error, so that the columns read as a list.
func (e *encoder) setErr(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) header(p format.PageHeader) {
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &p)
	e.setErr(err)
	e.out = append(e.out, b...)
}

// runs encodes v as runs and bit-packed groups into e.values.
func (e *encoder) runs(width int, v []int32) {
	var err error
	e.values, err = (&rle.Encoding{BitWidth: width}).EncodeInt32(e.values, v)
	e.setErr(err)
}

func (e *encoder) dataHeader(values, size int, enc format.Encoding) {
	p := format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(size), CompressedPageSize: int32(size)}
	p.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: int32(values), Encoding: enc,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
	e.header(p)
}

func (e *encoder) dictionaryHeader(values, size int) {
	p := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(size), CompressedPageSize: int32(size)}
	p.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(values), Encoding: format.Plain})
	e.header(p)
}

func (e *encoder) stringDictionary(values []string) {
	size := 0
	for _, v := range values {
		size += 4 + len(v)
	}
	e.dictionaryHeader(len(values), size)
	for _, v := range values {
		e.out = binary.LittleEndian.AppendUint32(e.out, uint32(len(v)))
		e.out = append(e.out, v...)
	}
}

func indexWidth(entries int) int { return max(1, bits.Len(uint(entries-1))) }

// runOf returns a data page of n indexes 0: one run.
func runOf(n int) []byte {
	b := binary.AppendUvarint([]byte{1}, uint64(n)<<1)
	return append(b, 0)
}

func (e *encoder) constant(col Column, value string, n int) {
	start := e.begin()
	e.stringDictionary([]string{value})
	data := e.begin()
	page := runOf(n)
	e.dataHeader(n, len(page), format.RLEDictionary)
	e.out = append(e.out, page...)
	e.end(col, start, start, data, n, []format.Encoding{format.Plain, format.RLEDictionary}, format.Statistics{})
}

func (e *encoder) constantDouble(col Column, value float64, n int) {
	start := e.begin()
	e.dictionaryHeader(1, 8)
	e.out = binary.LittleEndian.AppendUint64(e.out, math.Float64bits(value))
	data := e.begin()
	page := runOf(n)
	e.dataHeader(n, len(page), format.RLEDictionary)
	e.out = append(e.out, page...)
	e.end(col, start, start, data, n, []format.Encoding{format.Plain, format.RLEDictionary}, format.Statistics{})
}

// indexPage appends a dictionary-encoded data page.
func (e *encoder) indexPage(entries int, indexes []int32) {
	width := indexWidth(entries)
	e.runs(width, indexes)
	e.dataHeader(len(indexes), 1+len(e.values), format.RLEDictionary)
	e.out = append(append(e.out, byte(width)), e.values...)
}

func (e *encoder) dictionary(col Column, values []string, indexes []int32) {
	start := e.begin()
	e.stringDictionary(values)
	data := e.begin()
	e.indexPage(len(values), indexes)
	e.end(col, start, start, data, len(indexes), []format.Encoding{format.Plain, format.RLEDictionary},
		format.Statistics{})
}

func (e *encoder) kinds(c *columns) {
	all := engine.Kinds()
	values := make([]string, len(all))
	for i, k := range all {
		values[i] = k.String()
	}
	e.dictionary(ColKind, values, c.kind[:c.n])
}

func (e *encoder) statementIDs(c *columns) {
	none := int32(len(e.statements.values) - 1)
	statements := c.statement[:c.n]
	e.indexes = e.indexes[:0]
	const transaction = int32(engine.KindTransaction)
	for row, s := range statements {
		i := none
		switch {
		case int(s) < len(e.statements.index) && c.kind[row] == transaction:
			i = e.statements.transactions[s]
		case int(s) < len(e.statements.index):
			i = e.statements.index[s]
		case s >= int32(engine.FirstControl) && int(s-int32(engine.FirstControl)) < len(e.statements.controls):
			i = e.statements.controls[s-int32(engine.FirstControl)]
		}
		e.indexes = append(e.indexes, i)
	}
	e.dictionary(ColStatementID, e.statements.values, e.indexes)
}

// maxDictionaryConnections bounds the lookup table from connection id to
// dictionary entry; ids above it fall back to deltas.
const maxDictionaryConnections = 1 << 16

func (e *encoder) connections(c *columns) {
	if c.maxConnection >= maxDictionaryConnections {
		e.delta32(ColConnectionID, c.conn[:c.n])
		return
	}
	for len(e.conns) <= int(c.maxConnection) {
		e.conns = append(e.conns, 0)
	}
	e.indexes, e.connIDs = e.indexes[:0], e.connIDs[:0]
	for _, id := range c.conn[:c.n] {
		i := e.conns[id]
		if i == 0 {
			e.connIDs = append(e.connIDs, uint32(id))
			i = int32(len(e.connIDs))
			e.conns[id] = i
		}
		e.indexes = append(e.indexes, i-1)
	}
	start := e.begin()
	e.dictionaryHeader(len(e.connIDs), 4*len(e.connIDs))
	for _, id := range e.connIDs {
		e.out = binary.LittleEndian.AppendUint32(e.out, id)
		e.conns[id] = 0
	}
	data := e.begin()
	e.indexPage(len(e.connIDs), e.indexes)
	e.end(ColConnectionID, start, start, data, c.n, []format.Encoding{format.Plain, format.RLEDictionary},
		format.Statistics{})
}

func (e *encoder) delta32(col Column, v []int32) {
	var err error
	e.values, err = (&delta.BinaryPackedEncoding{}).EncodeInt32(e.values, v)
	e.setErr(err)
	e.deltaPage(col, len(v), format.Statistics{})
}

// delta64 encodes v as deltas into e.values.
func (e *encoder) delta64(v []int64) {
	var err error
	e.values, err = (&delta.BinaryPackedEncoding{}).EncodeInt64(e.values, v)
	e.setErr(err)
}

func (e *encoder) deltaPage(col Column, n int, stats format.Statistics) {
	start := e.begin()
	e.dataHeader(n, len(e.values), format.DeltaBinaryPacked)
	e.out = append(e.out, e.values...)
	e.end(col, start, 0, start, n, []format.Encoding{format.DeltaBinaryPacked}, stats)
}

func int64Stats(lo, hi int64) format.Statistics {
	return format.Statistics{
		MinValue: binary.LittleEndian.AppendUint64(nil, uint64(lo)),
		MaxValue: binary.LittleEndian.AppendUint64(nil, uint64(hi)),
	}
}

// times encodes due_at and started_at. In a closed loop they are equal and one
// encoding serves both.
func (e *encoder) times(c *columns) {
	e.delta64(c.due[:c.n])
	e.deltaPage(ColDueAt, c.n, int64Stats(c.minDue, c.maxDue))
	if c.dueDiffers != 0 {
		e.delta64(c.started[:c.n])
	}
	e.deltaPage(ColStartedAt, c.n, int64Stats(c.minStarted, c.maxStarted))
}

// ms divides, because the product with 1e-6 is off by one unit in the last
// place for a third of all values.
func ms(ns int64) float64 { return float64(ns) / 1e6 }

func (e *encoder) doubles(col Column, v []int64, stats format.Statistics) {
	start := e.begin()
	e.dataHeader(len(v), 8*len(v), format.Plain)
	at := len(e.out)
	need := at + 8*len(v)
	if cap(e.out) < need {
		e.out = append(make([]byte, 0, need+need/2), e.out...)
	}
	e.out = e.out[:need]
	dst := e.out[at:]
	for _, ns := range v {
		if len(dst) < 8 {
			break
		}
		binary.LittleEndian.PutUint64(dst, math.Float64bits(ms(ns)))
		dst = dst[8:]
	}
	e.end(col, start, 0, start, len(v), []format.Encoding{format.Plain}, stats)
}

func (e *encoder) durations(c *columns) {
	e.doubles(ColAppElapsedMs, c.elapsed[:c.n], format.Statistics{
		MinValue: binary.LittleEndian.AppendUint64(nil, math.Float64bits(ms(c.minElapsed))),
		MaxValue: binary.LittleEndian.AppendUint64(nil, math.Float64bits(ms(c.maxElapsed))),
	})
	for _, d := range []struct {
		col Column
		any int64
		v   []int64
	}{{ColScheduleLagMs, c.anyLag, c.lag}, {ColPoolWaitMs, c.anyWait, c.wait}} {
		if d.any == 0 {
			e.constantDouble(d.col, 0, c.n)
			continue
		}
		e.doubles(d.col, d.v[:c.n], format.Statistics{})
	}
}

// decodes encodes decode_ns; where nothing was decoded it is one run.
func (e *encoder) decodes(c *columns) {
	if c.anyDecode != 0 {
		e.delta64(c.decode[:c.n])
		e.deltaPage(ColDecodeNs, c.n, format.Statistics{})
		return
	}
	start := e.begin()
	e.dictionaryHeader(1, 8)
	e.out = append(e.out, 0, 0, 0, 0, 0, 0, 0, 0)
	data := e.begin()
	page := runOf(c.n)
	e.dataHeader(c.n, len(page), format.RLEDictionary)
	e.out = append(e.out, page...)
	e.end(ColDecodeNs, start, start, data, c.n, []format.Encoding{format.Plain, format.RLEDictionary}, format.Statistics{})
}

// bitPage appends a page of n booleans; bit returns the value of row i as 0 or 1.
func (e *encoder) bitPage(col Column, n int, bit func(i int) uint8) {
	start := e.begin()
	e.dataHeader(n, (n+7)/8, format.Plain)
	for i := 0; i < n; i += 8 {
		var b uint8
		for j := i; j < min(i+8, n); j++ {
			b |= bit(j) << (j - i)
		}
		e.out = append(e.out, b)
	}
	e.end(col, start, 0, start, n, []format.Encoding{format.Plain}, format.Statistics{})
}

func (e *encoder) warmup(c *columns) {
	warmup := c.warmup[:c.n]
	e.bitPage(ColWarmup, c.n, func(i int) uint8 { return uint8(warmup[i]) })
}

// equalBits appends a page of n equal booleans: bits is 0 or 0xff.
func (e *encoder) equalBits(col Column, n int, bits byte) {
	start := e.begin()
	e.dataHeader(n, (n+7)/8, format.Plain)
	for range (n + 7) / 8 {
		e.out = append(e.out, bits)
	}
	e.end(col, start, 0, start, n, []format.Encoding{format.Plain}, format.Statistics{})
}

func (e *encoder) rolledBack(c *columns) {
	if c.anyRolledBack == 0 {
		e.equalBits(ColRolledBack, c.n, 0)
		return
	}
	rolledBack := c.rolledBack[:c.n]
	e.bitPage(ColRolledBack, c.n, func(i int) uint8 { return rolledBack[i] })
}

// positions encodes position by dictionary: few values, most of them 0.
func (e *encoder) positions(c *columns) {
	highest := int32(0)
	if c.anyPosition != 0 {
		highest = slices.Max(c.position[:c.n])
	}
	start := e.begin()
	e.dictionaryHeader(int(highest)+1, 4*(int(highest)+1))
	for v := range highest + 1 {
		e.out = binary.LittleEndian.AppendUint32(e.out, uint32(v))
	}
	data := e.begin()
	if highest == 0 {
		page := runOf(c.n)
		e.dataHeader(c.n, len(page), format.RLEDictionary)
		e.out = append(e.out, page...)
	} else {
		e.indexPage(int(highest)+1, c.position[:c.n])
	}
	e.end(ColPosition, start, start, data, c.n, []format.Encoding{format.Plain, format.RLEDictionary}, format.Statistics{})
}

func (e *encoder) success(c *columns) {
	if c.anyFailed == 0 {
		e.equalBits(ColSuccess, c.n, 0xff)
		return
	}
	failed := c.failed[:c.n]
	e.bitPage(ColSuccess, c.n, func(i int) uint8 { return 1 - failed[i] })
}

// errorIndex is the error dictionary of one row group.
type errorIndex struct {
	known                map[int32][3]int32
	texts                [3]map[string]int32
	values               [3][]string
	class, code, message []int32
}

func (x *errorIndex) reset() {
	x.known = map[int32][3]int32{}
	for i := range x.texts {
		x.texts[i], x.values[i] = map[string]int32{}, x.values[i][:0]
	}
	x.class, x.code, x.message = x.class[:0], x.code[:0], x.message[:0]
}

func (x *errorIndex) add(col int, text string) int32 {
	i, ok := x.texts[col][text]
	if !ok {
		i = int32(len(x.values[col]))
		x.texts[col][text] = i
		x.values[col] = append(x.values[col], strings.ToValidUTF8(text, "\uFFFD"))
	}
	return i
}

func (e *encoder) errorColumns(c *columns) {
	cols := [3]Column{ColErrorClass, ColErrorCode, ColErrorMessage}
	if c.anyError == 0 {
		for _, col := range cols {
			e.null(col, c.n)
		}
		return
	}
	x := &e.errors
	x.reset()
	e.levels = e.levels[:0]
	last, at := int32(0), [3]int32{}
	for _, id := range c.errorIDs[:c.n] {
		if id == 0 {
			e.levels = append(e.levels, 0)
			continue
		}
		if id != last {
			var ok bool
			if at, ok = x.known[id]; !ok {
				err := e.errorOf(uint32(id))
				at = [3]int32{x.add(0, string(err.Class)), x.add(1, err.Code), x.add(2, err.Message)}
				x.known[id] = at
			}
			last = id
		}
		e.levels = append(e.levels, 1)
		x.class, x.code, x.message = append(x.class, at[0]), append(x.code, at[1]), append(x.message, at[2])
	}
	for i, indexes := range [3][]int32{x.class, x.code, x.message} {
		e.optional(cols[i], x.values[i], indexes, e.levels)
	}
}

// null appends a null-able column without any value.
func (e *encoder) null(col Column, n int) {
	start := e.begin()
	run := append(binary.AppendUvarint(nil, uint64(n)<<1), 0)
	e.dataHeader(n, 4+len(run), format.Plain)
	e.out = binary.LittleEndian.AppendUint32(e.out, uint32(len(run)))
	e.out = append(e.out, run...)
	e.end(col, start, 0, start, n, []format.Encoding{format.Plain, format.RLE}, format.Statistics{NullCount: int64(n)})
}

// queryIDs encodes server_query_id as text: every value is another one, so
// there is no dictionary.
func (e *encoder) queryIDs(c *columns) {
	if c.anyQueryID == 0 {
		e.null(ColServerQueryID, c.n)
		return
	}
	const length = 36
	e.levels, e.values = e.levels[:0], e.values[:0]
	present := 0
	for _, id := range c.queryIDs[:c.n] {
		if id == (engine.QueryID{}) {
			e.levels = append(e.levels, 0)
			continue
		}
		e.levels = append(e.levels, 1)
		present++
		e.values = binary.LittleEndian.AppendUint32(e.values, length)
		e.values, _ = id.AppendText(e.values) // never fails
	}
	start := e.begin()
	levels, err := (&rle.Encoding{BitWidth: 1}).EncodeLevels(nil, e.levels)
	e.setErr(err)
	e.dataHeader(c.n, 4+len(levels)+len(e.values), format.Plain)
	e.out = binary.LittleEndian.AppendUint32(e.out, uint32(len(levels)))
	e.out = append(e.out, levels...)
	e.out = append(e.out, e.values...)
	e.end(ColServerQueryID, start, 0, start, c.n, []format.Encoding{format.Plain, format.RLE},
		format.Statistics{NullCount: int64(c.n - present)})
}

// optional appends a null-able text column: levels has 1 for each row that has
// a value, indexes the dictionary entries of those.
func (e *encoder) optional(col Column, values []string, indexes []int32, levels []uint8) {
	start := e.begin()
	e.stringDictionary(values)
	data := e.begin()
	present, err := (&rle.Encoding{BitWidth: 1}).EncodeLevels(nil, levels)
	e.setErr(err)
	width := indexWidth(len(values))
	e.runs(width, indexes)
	e.dataHeader(len(levels), 4+len(present)+1+len(e.values), format.RLEDictionary)
	e.out = binary.LittleEndian.AppendUint32(e.out, uint32(len(present)))
	e.out = append(e.out, present...)
	e.out = append(append(e.out, byte(width)), e.values...)
	e.end(col, start, start, data, len(levels), []format.Encoding{format.Plain, format.RLE, format.RLEDictionary},
		format.Statistics{NullCount: int64(len(levels) - len(indexes))})
}
