package derived

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// A stream are executions as COPY reads them in its binary form. Encoding goes ahead of the connection by some buffers.
type copyStream struct {
	ctx context.Context
	// startNs is when the run started, since the epoch of Unix.
	startNs int64
	full    chan []byte
	empty   chan []byte
	err     error // set before full is closed
	buffer  []byte
	// What is read now.
	now, rest []byte
}

const (
	bufferSize = 1 << 20
	buffers    = 4
	// rowBytes is more than a row takes without its texts.
	rowBytes = 512
	fields   = 22
)

func newStream(ctx context.Context, start time.Time) *copyStream {
	s := &copyStream{
		ctx:     ctx,
		startNs: start.UnixNano(),
		full:    make(chan []byte, buffers),
		empty:   make(chan []byte, buffers),
	}
	for range buffers {
		s.empty <- make([]byte, 0, bufferSize)
	}
	s.buffer = append(make([]byte, 0, bufferSize), "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	return s
}

// Read implements io.Reader.
func (s *copyStream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.now != nil {
			s.empty <- s.now[:0] // there is room: it came from there
			s.now = nil
		}
		select {
		case b, ok := <-s.full:
			if !ok {
				if s.err != nil {
					return 0, s.err
				}
				return 0, io.EOF
			}
			s.now, s.rest = b, b
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// pass hands the buffer over and takes an empty one.
func (s *copyStream) pass() error {
	select {
	case s.full <- s.buffer:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	select {
	case s.buffer = <-s.empty:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	return nil
}

// end ends the stream; with an error the copy fails. It is called once.
func (s *copyStream) end(err error) error {
	if err == nil {
		s.buffer = binary.BigEndian.AppendUint16(s.buffer, math.MaxUint16)
		err = s.pass()
	}
	s.err = err
	close(s.full)
	return err
}

// texts are those of a column as fields: null, or "" where a column has no null, comes first.
func texts(c *record.Texts, nullable bool) [][]byte {
	all := make([][]byte, len(c.Values)+1)
	all[0] = []byte{0, 0, 0, 0}
	if nullable {
		all[0] = []byte{0xff, 0xff, 0xff, 0xff}
	}
	for i, v := range c.Values {
		v = strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD")
		all[i+1] = append(binary.BigEndian.AppendUint32(nil, uint32(len(v))), v...)
	}
	return all
}

// postgresEpoch is when Postgres's time begins, in microseconds of Unix.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func appendInt64(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(n))
}

func appendInt32(b []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 4), uint32(n))
}

func appendTime(b []byte, micro int64) []byte { return appendInt64(b, micro-postgresEpoch) }

func appendFloat(b []byte, f float64) []byte { return appendInt64(b, int64(math.Float64bits(f))) }

func appendBool(b []byte, is bool) []byte {
	if is {
		return append(b, 0, 0, 0, 1, 1)
	}
	return append(b, 0, 0, 0, 1, 0)
}

// take encodes executions, in the order of executionColumns.
func (s *copyStream) take(e *rollup.Executions) error {
	worker, kind, statement := texts(&e.Worker, false), texts(&e.Kind, false), texts(&e.Statement, false)
	class, code, message := texts(&e.Class, true), texts(&e.Code, true), texts(&e.Message, true)
	ids := texts(&e.QueryID, true)
	for i := range e.DueNs {
		list := [...][]byte{worker[e.Worker.Index[i]+1], kind[e.Kind.Index[i]+1], statement[e.Statement.Index[i]+1],
			class[e.Class.Index[i]+1], code[e.Code.Index[i]+1], message[e.Message.Index[i]+1], ids[e.QueryID.Index[i]+1]}
		size := rowBytes
		for _, text := range list {
			size += len(text)
		}
		if len(s.buffer)+size > bufferSize {
			if err := s.pass(); err != nil {
				return err
			}
		}
		b := append(s.buffer, 0, fields)
		b = appendInt64(b, int64(uint32(e.Seq[i])))
		b = appendTime(b, e.DueMicro(i, s.startNs))
		b = appendTime(b, e.StartedNs[i]/int64(time.Microsecond))
		b = appendFloat(b, e.ElapsedMs[i])
		b = appendFloat(b, e.LagMs[i])
		b = appendFloat(b, e.WaitMs[i])
		b = appendInt64(b, e.DecodeNs[i])
		b = appendInt64(b, int64(uint32(e.Connection[i])))
		b = appendInt32(b, e.Step[i])
		b = appendInt32(b, e.Rows[i])
		b = appendInt32(b, e.Retries[i])
		b = appendInt32(b, e.Position[i])
		b = appendBool(b, e.Warmup[i])
		b = appendBool(b, e.Success[i])
		b = appendBool(b, e.RolledBack[i])
		for _, text := range list {
			b = append(b, text...)
		}
		s.buffer = b
	}
	return nil
}
