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

// frozenStatements is the run's statement list in the form that the decoder compares with. What a guest writes into
// its memory, batches of operations and of sample rows, is read byte by byte against it and against the columns of
// the table. Reading is pure, and allocates only while the batch that is filled grows.
type frozenStatements struct {
	binds   [][]uint8 // value types of each statement
	columns []int     // how many result columns each statement declares
	ids     []string
	// keys are the sampled keys of each pool that the stream was opened with, nil for a pool that has none.
	keys []*engine.PackedKeys
}

// freezeStatements makes a list of statements into what Decode compares with.
func freezeStatements(statements []engine.Statement) (*frozenStatements, error) {
	if len(statements) == 0 {
		return nil, errors.New("the statement list is empty")
	}
	if len(statements) > abi.MaxStatements {
		return nil, fmt.Errorf("%d statements, the limit is %d", len(statements), abi.MaxStatements)
	}
	f := &frozenStatements{}
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
		f.binds, f.columns, f.ids = append(f.binds, types), append(f.columns, len(s.Columns)), append(f.ids, s.ID)
	}
	return f, nil
}

var valueTypes8 = [...]engine.ValueType{abi.TypeNull: "", abi.TypeI64: engine.TypeI64, abi.TypeF64: engine.TypeF64,
	abi.TypeText:  engine.TypeText,
	abi.TypeBytes: engine.TypeBytes, abi.TypeBool: engine.TypeBool, abi.TypeTimestamp: engine.TypeTimestamp}

// Decode checks a whole batch and fills b with it. The batch has been copied to
// b.Data, which text and bytes values point into; those of sampled keys are appended. It allocates only while b grows.
func (f *frozenStatements) Decode(b *plugin.Batch, maxOps int) error {
	data := b.Data
	nops, err := abi.Header(data)
	if err != nil {
		return err
	}
	if nops == 0 {
		return errors.New("it holds no operation; a stream ends with length 0")
	}
	if int64(nops) > int64(maxOps)+abi.MaxGroupOps+1 {
		return tooManyError(nops, maxOps)
	}
	pos := abi.HeaderSize
	begin := noTransaction // the index of the BEGIN of the transaction under way
	for i := 0; i < int(nops); i++ {
		if i >= maxOps && begin == noTransaction {
			return tooManyError(nops, maxOps)
		}
		if len(data)-pos < 3 {
			return fmt.Errorf("operation %d is cut off", i)
		}
		statement, nargs := binary.LittleEndian.Uint16(data[pos:]), int(data[pos+2])
		pos += 3
		if statement >= abi.FirstControl {
			if pos, begin, err = readControl(b, pos, statement, nargs, begin); err != nil {
				return err
			}
			continue
		}
		if int(statement) >= len(f.binds) {
			return fmt.Errorf("operation %d names statement %d, but only %d were declared", i, statement, len(f.binds))
		}
		types := f.binds[statement]
		if nargs != len(types) {
			return fmt.Errorf("operation %d (%s) has %d arguments, the statement takes %d", i, f.ids[statement], nargs,
				len(types))
		}
		b.Ops = append(b.Ops, plugin.Op{})
		op := &b.Ops[len(b.Ops)-1] // field by field: the compiler copies a literal of five through memory
		op.Statement, op.FirstArg, op.NArgs = statement, uint32(len(b.Args)), uint16(nargs)
		for a, want := range types {
			if pos < len(data) && data[pos] == abi.TypeRef {
				if pos, err = f.ref(b, pos, begin); err != nil {
					return f.argument(i, statement, a, err)
				}
				continue
			}
			var v plugin.Value
			if pos < len(data) && data[pos] == abi.TypeKey {
				v, pos, err = f.key(b, data, pos+1, want)
			} else {
				v, pos, err = readValue(data, pos, want)
			}
			if err != nil {
				return f.argument(i, statement, a, err)
			}
			b.Args = append(b.Args, v)
		}
	}
	if begin != noTransaction {
		return fmt.Errorf("the transaction that begins at operation %d has no end; a transaction lies within one batch",
			begin)
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
	errRef       = errors.New("a ref names an operation of its transaction, and this operation is in none")
	errTimestamp = errors.New("a timestamp lies outside the years 1 to 9999")
)

// readValue reads one value of type want, or NULL.
func readValue(data []byte, pos int, want uint8) (v plugin.Value, next int, err error) {
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
	name := abi.TypeName(got)
	if name == "" {
		return fmt.Errorf("unknown value type %d", got)
	}
	return fmt.Errorf("its type is %s, the statement takes %s", name, abi.TypeName(want))
}

// noTransaction is the index of BEGIN where there is no transaction.
const noTransaction = -1

func tooManyError(nops uint32, maxOps int) error {
	return fmt.Errorf("it holds %d operations, %d were asked for; only a transaction that begins before that may end "+
		"after it", nops, maxOps)
}

func (f *frozenStatements) argument(i int, statement uint16, a int, err error) error {
	return fmt.Errorf("operation %d (%s), argument %d: %w", i, f.ids[statement], a, err)
}

// ref reads a ref as the next argument of the operation that b.Ops ends with, and
// marks the operation it refers to.
func (f *frozenStatements) ref(b *plugin.Batch, pos, begin int) (next int, err error) {
	if len(b.Data)-pos < 3 {
		return 0, errCutOff
	}
	if begin == noTransaction {
		return 0, errRef
	}
	k, c := int(b.Data[pos+1]), int(b.Data[pos+2])
	own := len(b.Ops) - begin - 2
	if k >= own {
		return 0, fmt.Errorf("it refers to operation %d of its transaction, but is operation %d itself and can only refer "+
			"to earlier ones", k, own)
	}
	at := &b.Ops[begin+1+k]
	if columns := f.columns[at.Statement]; c >= columns {
		return 0, fmt.Errorf("it refers to column %d of statement %s, which declares %d columns", c, f.ids[at.Statement],
			columns)
	}
	at.Referred = true
	b.Args = append(b.Args, plugin.Ref(uint8(k), uint8(c)))
	return pos + 3, nil
}

// key reads the number of a sampled key, and gives its value: texts are put behind the batch.
func (f *frozenStatements) key(
	b *plugin.Batch,
	data []byte,
	pos int,
	want uint8,
) (v plugin.Value, next int, err error) {
	if len(data)-pos < 6 {
		return v, 0, errCutOff
	}
	pool, column, n := int(data[pos]), int(data[pos+1]), binary.LittleEndian.Uint32(data[pos+2:])
	if pool >= len(f.keys) || f.keys[pool] == nil {
		return v, 0, fmt.Errorf("it names a key of pool %d, which has none", pool)
	}
	keys := f.keys[pool]
	t, known := keys.Type(column)
	switch {
	case !known:
		return v, 0, fmt.Errorf("it names column %d of the keys of pool %d, which have fewer", column, pool)
	case uint64(n) >= uint64(keys.Len()):
		return v, 0, fmt.Errorf("it names key %d of pool %d, which has %d", n, pool, keys.Len())
	case t != valueTypes8[want]:
		return v, 0, fmt.Errorf("the type of the key's column is %s, the statement takes %s", t, abi.TypeName(want))
	}
	v.Type = t
	switch t {
	case engine.TypeText, engine.TypeBytes:
		v.Off = uint32(len(b.Data))
		b.Data = keys.AppendText(b.Data, column, int(n))
		v.Len = uint32(len(b.Data)) - v.Off
	case engine.TypeF64:
		v.F = math.Float64frombits(keys.Number(column, int(n)))
	default:
		v.I = int64(keys.Number(column, int(n)))
	}
	return v, pos + 6, nil
}

// readControl reads a control statement and returns the position after it and the
// new index of BEGIN.
func readControl(b *plugin.Batch, pos int, statement uint16, nargs, begin int) (next, nowBegin int, err error) {
	op := plugin.Op{Statement: statement, FirstArg: uint32(len(b.Args))}
	i := len(b.Ops)
	if statement == abi.StatementDelay {
		op.Delay, pos, err = readDelay(b.Data, pos, i, nargs, begin)
	} else {
		begin, err = readBorder(i, statement, nargs, begin)
	}
	b.Ops = append(b.Ops, op)
	return pos, begin, err
}

// readBorder reads BEGIN, COMMIT or ROLLBACK and returns the new index of BEGIN.
func readBorder(i int, statement uint16, nargs, begin int) (int, error) {
	var name string
	switch statement {
	case abi.StatementBegin:
		name = "BEGIN"
	case abi.StatementCommit:
		name = "COMMIT"
	case abi.StatementRollback:
		name = "ROLLBACK"
	default:
		return 0, fmt.Errorf("operation %d is the unknown control statement %#x", i, statement)
	}
	switch {
	case nargs != 0:
		return 0, fmt.Errorf("operation %d (%s) has %d arguments, it takes none", i, name, nargs)
	case statement == abi.StatementBegin && begin != noTransaction:
		return 0, fmt.Errorf("operation %d is BEGIN inside the transaction that began at operation %d; transactions do "+
			"not nest", i, begin)
	case statement == abi.StatementBegin:
		return i, nil
	case begin == noTransaction:
		return 0, fmt.Errorf("operation %d is %s, but no transaction has begun", i, name)
	case i-begin-1 == 0:
		return 0, fmt.Errorf("operation %d is %s of a transaction that holds no operation", i, name)
	case i-begin-1 > abi.MaxGroupOps:
		return 0, fmt.Errorf("the transaction that begins at operation %d holds %d operations, the limit is %d", begin,
			i-begin-1, abi.MaxGroupOps)
	}
	return noTransaction, nil
}

// readDelay reads the argument of DELAY.
func readDelay(data []byte, pos, i, nargs, begin int) (time.Duration, int, error) {
	if nargs != 1 {
		return 0, 0, fmt.Errorf("operation %d (DELAY) has %d arguments, it takes 1", i, nargs)
	}
	if begin != noTransaction {
		return 0, 0, fmt.Errorf("operation %d is DELAY inside the transaction that began at operation %d; think time "+
			"belongs between transactions", i, begin)
	}
	v, next, err := readValue(data, pos, abi.TypeI64)
	if err != nil {
		return 0, 0, fmt.Errorf("operation %d (DELAY): %w", i, err)
	}
	if v.Type == "" || v.I < 0 || v.I > abi.MaxDelayMicros {
		return 0, 0, fmt.Errorf("operation %d (DELAY) asks for %d µs; 0 to %d are possible", i, v.I,
			int64(abi.MaxDelayMicros))
	}
	return time.Duration(v.I) * time.Microsecond, next, nil
}
