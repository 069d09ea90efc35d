package replay

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// csvField is how errors name the text.
const csvField = "workload.feed.csv"

// chunkOps is how many operations are fed at once, and chunkBytes about how many
// bytes of values.
const (
	chunkOps   = 128
	chunkBytes = 256 << 10
)

// maxPause is the longest pause that one delay of a batch holds.
const maxPause = time.Hour

// CheckCSV reads the whole text, so that its errors are known before a run.
func CheckCSV(text string, statements []engine.Statement) error {
	f := NewCSV(text, statements, 0, 1)
	var b plugin.Batch
	for n := 0; ; n++ {
		switch err := f.Next(&b); {
		case errors.Is(err, plugin.ErrEnded) && n == 0:
			return engine.InvalidField(csvField, "holds no operation", "lines are: at_ms, statement, values")
		case errors.Is(err, plugin.ErrEnded):
			return nil
		case err != nil:
			return err
		}
	}
}

// csvFeed is a CSV text as a feed.
type csvFeed struct {
	lines      records
	statements []engine.Statement
	index      map[string]int
	share, of  int
	group      int // number of the next group, over all shares
	line       int
	at         time.Duration // of the last line
	dealt      time.Duration // of the last group that this share got
	inside     int           // the line of the BEGIN of the transaction under way; 0 for none
	operations int           // in the transaction under way
	began      time.Duration
	ended      bool
}

// NewCSV returns the share of the text that worker share of of gets. A line is
// at_ms, statement, values. at_ms are milliseconds since the beginning and never
// decrease; statement is the id of one of statements, or BEGIN, COMMIT or ROLLBACK; values are
// in the order of its binds. A value \N is NULL, and so is an empty one, unless
// its bind is text. A first line that begins with at_ms is a heading. A text that begins with { is JSON lines, which
// hold the same: {"at_ms": 0, "statement": "find", "values": [17]}.
func NewCSV(text string, statements []engine.Statement, share, of int) plugin.Feed {
	f := &csvFeed{statements: statements, index: map[string]int{}, share: share, of: max(of, 1)}
	if isJSONLines(text) {
		f.lines = &jsonRecords{rest: text}
	} else {
		f.lines = newCSVRecords(text)
	}
	for i, s := range statements {
		f.index[s.ID] = i
	}
	return f
}

func (f *csvFeed) Close() error { return nil }

func (f *csvFeed) wrong(format string, args ...any) error {
	return engine.InvalidField(csvField, fmt.Sprintf("line %d: ", f.line)+fmt.Sprintf(format, args...), f.lines.shape())
}

// Next reads until the chunk is full and no transaction is open.
func (f *csvFeed) Next(b *plugin.Batch) error {
	b.Reset()
	for !f.ended && (f.inside > 0 || len(b.Ops) < chunkOps && len(b.Data) < chunkBytes) {
		line, record, err := f.lines.next()
		if errors.Is(err, io.EOF) {
			f.ended = true
			if f.inside > 0 {
				f.line = f.inside
				return f.wrong("the transaction that begins here has no end")
			}
			break
		}
		f.line = line
		if err != nil {
			return f.wrong("%v", err)
		}
		if err := f.add(b, record); err != nil {
			return err
		}
	}
	if len(b.Ops) == 0 {
		return plugin.ErrEnded
	}
	return nil
}

func (f *csvFeed) add(b *plugin.Batch, record []string) error {
	first := strings.TrimSpace(record[0])
	if f.line == 1 && strings.EqualFold(first, "at_ms") {
		return nil
	}
	if len(record) < 2 {
		return f.wrong("there is no statement behind the time")
	}
	ms, err := strconv.ParseFloat(first, 64)
	if err != nil || !(ms >= 0 && ms <= math.MaxInt32*1000.0) {
		return f.wrong("%q is no time in milliseconds", clip(first))
	}
	at := time.Duration(ms * float64(time.Millisecond))
	if at < f.at {
		return f.wrong("its time %s ms is before that of the line above", first)
	}
	f.at = at
	mine := f.group%f.of == f.share
	switch name := strings.TrimSpace(record[1]); name {
	case "BEGIN":
		if f.inside > 0 {
			return f.wrong("BEGIN inside the transaction that began in line %d", f.inside)
		}
		f.inside, f.operations, f.began = f.line, 0, at
		f.control(b, mine, plugin.StatementBegin)
	case "COMMIT", "ROLLBACK":
		switch {
		case f.inside == 0:
			return f.wrong("%s without a BEGIN", name)
		case f.operations == 0:
			return f.wrong("%s of a transaction without statements", name)
		}
		code := plugin.StatementCommit
		if name == "ROLLBACK" {
			code = plugin.StatementRollback
		}
		f.control(b, mine, code)
		f.inside = 0
		f.group++
	default:
		return f.operation(b, mine, name, record[2:])
	}
	return nil
}

// maxGroup is the most statements of a transaction.
const maxGroup = 256

func (f *csvFeed) operation(b *plugin.Batch, mine bool, name string, values []string) error {
	n, ok := f.index[name]
	if !ok {
		return f.wrong("there is no statement %q", name)
	}
	binds := f.statements[n].Binds
	if len(values) != len(binds) {
		return f.wrong("%s takes %d values, and there are %d", name, len(binds), len(values))
	}
	if f.inside > 0 {
		if f.operations++; f.operations > maxGroup {
			return f.wrong("the transaction has more than %d statements", maxGroup)
		}
	} else {
		f.pause(b, mine, f.at)
	}
	args := len(b.Args)
	data := len(b.Data)
	for i, text := range values {
		v, err := value(b, text, binds[i].Type)
		if err != nil {
			return f.wrong("%s of %s: %v", binds[i].Name, name, err)
		}
		b.Args = append(b.Args, v)
	}
	if mine {
		b.Ops = append(b.Ops, plugin.Op{Statement: uint16(n), FirstArg: uint32(args), NArgs: uint16(len(binds))})
	} else {
		b.Args, b.Data = b.Args[:args], b.Data[:data]
	}
	if f.inside == 0 {
		f.group++
	}
	return nil
}

func (f *csvFeed) control(b *plugin.Batch, mine bool, code uint16) {
	if code == plugin.StatementBegin {
		f.pause(b, mine, f.began)
	}
	if mine {
		b.Ops = append(b.Ops, plugin.Op{Statement: code, FirstArg: uint32(len(b.Args))})
	}
}

// pause writes the time since this share's last group.
func (f *csvFeed) pause(b *plugin.Batch, mine bool, at time.Duration) {
	if mine {
		appendPause(b, at-f.dealt)
		f.dealt = at
	}
}

func appendPause(b *plugin.Batch, gap time.Duration) {
	for gap > 0 {
		d := min(gap, maxPause)
		b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementDelay, FirstArg: uint32(len(b.Args)), Delay: d})
		gap -= d
	}
}

var layouts = [...]string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999", "2006-01-02"}

// value reads a text as a bind's type; texts and bytes are put into b.Data.
func value(b *plugin.Batch, text string, t engine.ValueType) (plugin.Value, error) {
	if text == `\N` || text == "" && t != engine.TypeText {
		return plugin.Value{}, nil
	}
	v := plugin.Value{Type: t}
	var err error
	switch t {
	case engine.TypeI64:
		v.I, err = strconv.ParseInt(text, 10, 64)
	case engine.TypeF64:
		v.F, err = strconv.ParseFloat(text, 64)
	case engine.TypeBool:
		var yes bool
		if yes, err = strconv.ParseBool(text); yes {
			v.I = 1
		}
	case engine.TypeTimestamp:
		for _, layout := range layouts {
			var at time.Time
			if at, err = time.Parse(layout, text); err == nil {
				v.I = at.UnixMicro()
				break
			}
		}
	case engine.TypeBytes:
		v.Off = uint32(len(b.Data))
		var raw []byte
		if raw, err = hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			b.Data = append(b.Data, raw...)
			v.Len = uint32(len(raw))
		}
	default:
		if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
			return v, errors.New("is not UTF-8 text")
		}
		v.Off, v.Len = uint32(len(b.Data)), uint32(len(text))
		b.Data = append(b.Data, text...)
	}
	if err != nil {
		return v, fmt.Errorf("%q is not of type %s", clip(text), t)
	}
	return v, nil
}

func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}
