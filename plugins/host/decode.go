package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// frozen is the run's statement list in the form that the decoder compares with.
type frozen struct {
	binds [][]uint8 // value types of each statement
	ids   []string
}

func freeze(statements []engine.Statement) (*frozen, error) {
	if len(statements) == 0 {
		return nil, errors.New("the statement list is empty")
	}
	if len(statements) > abi.MaxStatements {
		return nil, fmt.Errorf("%d statements, the limit is %d", len(statements), abi.MaxStatements)
	}
	f := &frozen{}
	for _, s := range statements {
		if len(s.Binds) > abi.MaxArgs {
			return nil, fmt.Errorf("statement %q has %d binds, the limit is %d", s.ID, len(s.Binds), abi.MaxArgs)
		}
		types := make([]uint8, len(s.Binds))
		for i, b := range s.Binds {
			t, ok := abi.ParseType(string(b.Type))
			if !ok {
				return nil, fmt.Errorf("bind %q of statement %q has the unknown type %q", b.Name, s.ID, b.Type)
			}
			types[i] = t
		}
		f.binds, f.ids = append(f.binds, types), append(f.ids, s.ID)
	}
	return f, nil
}

var valueTypes8 = [...]engine.ValueType{abi.TypeNull: "", abi.TypeI64: engine.TypeI64, abi.TypeF64: engine.TypeF64, abi.TypeText: engine.TypeText,
	abi.TypeBytes: engine.TypeBytes, abi.TypeBool: engine.TypeBool, abi.TypeTimestamp: engine.TypeTimestamp}

// decode checks a whole batch and fills b with it. The batch has been copied to
// b.Data, which text and bytes values point into. It allocates only while b grows.
func (f *frozen) decode(b *plugin.Batch, maxOps int) error {
	data := b.Data
	nops, err := abi.Header(data)
	if err != nil {
		return err
	}
	if nops == 0 {
		return errors.New("it holds no operation; a stream ends with length 0")
	}
	if int64(nops) > int64(maxOps) {
		return fmt.Errorf("it holds %d operations, %d were asked for", nops, maxOps)
	}
	pos := abi.HeaderSize
	for i := 0; i < int(nops); i++ {
		if len(data)-pos < 3 {
			return fmt.Errorf("operation %d is cut off", i)
		}
		statement, nargs := binary.LittleEndian.Uint16(data[pos:]), int(data[pos+2])
		pos += 3
		if statement >= abi.FirstControl {
			delay, next, err := control(data, pos, i, statement, nargs)
			if err != nil {
				return err
			}
			b.Ops = append(b.Ops, plugin.Op{Statement: statement, FirstArg: uint32(len(b.Args)), Delay: delay})
			pos = next
			continue
		}
		if int(statement) >= len(f.binds) {
			return fmt.Errorf("operation %d names statement %d, but only %d were declared", i, statement, len(f.binds))
		}
		types := f.binds[statement]
		if nargs != len(types) {
			return fmt.Errorf("operation %d (%s) has %d arguments, the statement takes %d", i, f.ids[statement], nargs, len(types))
		}
		b.Ops = append(b.Ops, plugin.Op{Statement: statement, FirstArg: uint32(len(b.Args)), NArgs: uint16(nargs)})
		for a, want := range types {
			var v plugin.Value
			if v, pos, err = value(data, pos, want); err != nil {
				return fmt.Errorf("operation %d (%s), argument %d: %w", i, f.ids[statement], a, err)
			}
			b.Args = append(b.Args, v)
		}
	}
	if pos != len(data) {
		return fmt.Errorf("%d bytes follow the last operation", len(data)-pos)
	}
	return nil
}

var (
	errCutOff    = errors.New("it is cut off")
	errBool      = errors.New("a bool is 0 or 1")
	errUTF8      = errors.New("a text is not UTF-8")
	errRef       = errors.New("ref values belong to transactions, and transactions are not supported by this version")
	errTimestamp = errors.New("a timestamp lies outside the years 1 to 9999")
)

// value reads one value of type want, or NULL.
func value(data []byte, pos int, want uint8) (v plugin.Value, next int, err error) {
	if pos >= len(data) {
		return v, 0, errCutOff
	}
	t := data[pos]
	pos++
	if t == abi.TypeNull {
		return v, pos, nil
	}
	if t != want {
		return v, 0, wrongType(t, want)
	}
	v.Type = valueTypes8[t]
	rest := len(data) - pos
	switch t {
	case abi.TypeText, abi.TypeBytes:
		if rest < 4 {
			return v, 0, errCutOff
		}
		n := binary.LittleEndian.Uint32(data[pos:])
		pos += 4
		if uint64(n) > uint64(rest-4) {
			return v, 0, fmt.Errorf("a %s of %d bytes reaches past the end of the batch", abi.TypeName(t), n)
		}
		v.Off, v.Len = uint32(pos), n
		end := pos + int(n)
		if t == abi.TypeText && !utf8.Valid(data[pos:end]) {
			return v, 0, errUTF8
		}
		return v, end, nil
	case abi.TypeBool:
		if rest < 1 {
			return v, 0, errCutOff
		}
		if data[pos] > 1 {
			return v, 0, errBool
		}
		v.I = int64(data[pos])
		return v, pos + 1, nil
	}
	if rest < 8 {
		return v, 0, errCutOff
	}
	x := binary.LittleEndian.Uint64(data[pos:])
	switch t {
	case abi.TypeF64:
		v.F = math.Float64frombits(x)
	case abi.TypeTimestamp:
		v.I = int64(x)
		if v.I < abi.MinTimestamp || v.I > abi.MaxTimestamp {
			return v, 0, errTimestamp
		}
	default:
		v.I = int64(x)
	}
	return v, pos + 8, nil
}

func wrongType(got, want uint8) error {
	if got == abi.TypeRef {
		return errRef
	}
	name := abi.TypeName(got)
	if name == "" {
		return fmt.Errorf("unknown value type %d", got)
	}
	return fmt.Errorf("its type is %s, the statement takes %s", name, abi.TypeName(want))
}

// control reads a control statement; of those only DELAY is supported.
func control(data []byte, pos, i int, statement uint16, nargs int) (delay time.Duration, next int, err error) {
	var name string
	switch statement {
	case abi.StatementDelay:
		if nargs != 1 {
			return 0, 0, fmt.Errorf("operation %d (DELAY) has %d arguments, it takes 1", i, nargs)
		}
		v, next, err := value(data, pos, abi.TypeI64)
		if err != nil {
			return 0, 0, fmt.Errorf("operation %d (DELAY): %w", i, err)
		}
		if v.Type == "" || v.I < 0 || v.I > abi.MaxDelayMicros {
			return 0, 0, fmt.Errorf("operation %d (DELAY) asks for %d µs; 0 to %d are possible", i, v.I, int64(abi.MaxDelayMicros))
		}
		return time.Duration(v.I) * time.Microsecond, next, nil
	case abi.StatementBegin:
		name = "BEGIN"
	case abi.StatementCommit:
		name = "COMMIT"
	case abi.StatementRollback:
		name = "ROLLBACK"
	default:
		return 0, 0, fmt.Errorf("operation %d is the unknown control statement %#x", i, statement)
	}
	return 0, 0, fmt.Errorf("operation %d is %s, but transactions are not supported by this version", i, name)
}
