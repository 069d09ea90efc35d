package dryrun

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// operation is one of a batch, copied out of it.
type operation struct {
	statement int
	args      []value
}

// draw is an operation with those before it in its transaction.
type draw struct {
	operation
	before []operation
}

// value is an argument as text; it is NULL, or column c of the first row of operation k of the transaction.
type value struct {
	text string
	null bool
	ref  bool
	k, c int
}

func values(b *plugin.Batch, op plugin.Op) []value {
	list := make([]value, op.NArgs)
	for i, v := range b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)] {
		switch v.Type {
		case "":
			list[i].null = true
		case plugin.TypeRef:
			list[i].ref = true
			list[i].k, list[i].c = v.Ref()
		case engine.TypeI64:
			list[i].text = strconv.FormatInt(v.I, 10)
		case engine.TypeF64:
			list[i].text = strconv.FormatFloat(v.F, 'g', -1, 64)
		case engine.TypeBool:
			list[i].text = strconv.FormatBool(v.I != 0)
		case engine.TypeTimestamp:
			list[i].text = time.UnixMicro(v.I).UTC().Format("2006-01-02 15:04:05.999999Z07:00")
		case engine.TypeBytes:
			list[i].text = `\x` + hex.EncodeToString(b.Bytes(v))
		default:
			list[i].text = string(b.Bytes(v))
		}
	}
	return list
}

// shown is the value as it is shown to a user; nil is NULL.
func (v value) shown() *string {
	text := v.text
	switch {
	case v.null:
		return nil
	case v.ref:
		text = fmt.Sprintf("(column %d of statement %d of the transaction)", v.c+1, v.k+1)
	}
	return clip(text)
}

// arguments are those of the SQL, in the order of its parameters. What refers to an earlier statement is read with that
// statement, if it only reads; else it is NULL, which a note says.
func (p *probe) arguments(ctx context.Context, s engine.Statement, d draw) []any {
	byBind := make([]any, len(s.Binds))
	for i := range s.Binds {
		if i >= len(d.args) {
			continue
		}
		switch v := d.args[i]; {
		case v.null:
		case v.ref:
			byBind[i] = p.resolveRef(ctx, d, v)
		default:
			byBind[i] = v.text
		}
	}
	if s.BindOrder == nil {
		return byBind
	}
	args := make([]any, len(s.BindOrder))
	for i, bind := range s.BindOrder {
		args[i] = byBind[bind]
	}
	return args
}

func (p *probe) resolveRef(ctx context.Context, d draw, v value) any {
	if v.k >= len(d.before) {
		return nil
	}
	earlier := d.before[v.k]
	s := p.plan.Statements[earlier.statement]
	reader, ok := p.database.(target.Reader)
	if s.Writes || !ok {
		p.note(fmt.Sprintf("A value comes from %s, which is not executed here: NULL stands for it.", s.ID))
		return nil
	}
	rs, err := reader.Read(ctx, s.SQL, statementTimeout,
		p.arguments(ctx, s, draw{operation: earlier, before: d.before[:v.k]})...)
	if err != nil || len(rs.Rows) == 0 || v.c >= len(rs.Rows[0]) {
		p.note(fmt.Sprintf("A value comes from %s, which gave no row: NULL stands for it.", s.ID))
		return nil
	}
	if text := textOf(rs.Rows[0][v.c]); text != nil {
		return *text
	}
	return nil
}

func (p *probe) note(sentence string) {
	for _, n := range p.trial.Notes {
		if n == sentence {
			return
		}
	}
	p.trial.Notes = append(p.trial.Notes, sentence)
}

// textOf is a value of a result as text; nil is NULL.
func textOf(v any) *string {
	var text string
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		text = v
	case time.Time:
		text = v.UTC().Format("2006-01-02 15:04:05.999999Z07:00")
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		text = fmt.Sprint(v)
	}
	return &text
}

// cell is plain, as long as a table shows it.
func cell(v any) *string {
	text := textOf(v)
	if text == nil {
		return nil
	}
	return clip(*text)
}

func clip(text string) *string {
	text = strings.ToValidUTF8(text, "�")
	if utf8.RuneCountInString(text) > maxValueLength {
		text = string([]rune(text)[:maxValueLength]) + "…"
	}
	return &text
}
