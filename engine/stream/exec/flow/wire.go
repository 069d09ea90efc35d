// This part is how what the heads of a continuous query come to travels to its tail: frames, each some words about
// rows, parts of windows, and how far sources have come. Their order is that in which they were said; a tail that hears
// them does what it would do if the sources were its own.
//
// What comes is checked: a frame that is not what it should be ends the query, and changes nothing else.

package flow

import (
	"encoding/binary"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// The words of a frame.
const (
	msgRows byte = iota + 1
	msgPane
	msgAdvance
	msgQuiet
	msgEnded
)

const (
	// frameBytes is from how many bytes on a frame is sent though more is to be said.
	frameBytes = 256 << 10
	// maxRowsBytes is about how many bytes of rows are one word.
	maxRowsBytes = 1 << 20
)

// Writer makes frames of what heads come to; it implements Outlet. One goroutine at a time may use it.
type Writer struct {
	send    func(frame []byte) error
	frame   []byte
	scratch []byte
	sent    int64
}

// NewWriter gives frames to send, which owns what it is given, and may wait.
func NewWriter(send func(frame []byte) error) *Writer { return &Writer{send: send} }

// Bytes is how many were sent.
func (w *Writer) Bytes() int64 { return w.sent }

// Sync sends what was said.
func (w *Writer) Sync() error {
	if len(w.frame) == 0 {
		return nil
	}
	frame := w.frame
	w.frame = make([]byte, 0, min(2*len(frame), frameBytes))
	w.sent += int64(len(frame))
	return w.send(frame)
}

func (w *Writer) beginMessage(kind byte, scan int) {
	w.frame = binary.AppendUvarint(append(w.frame, kind), uint64(scan))
}

func (w *Writer) endMessage() error {
	if len(w.frame) < frameBytes {
		return nil
	}
	return w.Sync()
}

// Rows implements Outlet.
func (w *Writer) Rows(scan, origin int, b *column.Batch) error {
	size := 0
	for i := range b.Cols {
		size += 8*b.N + len(b.Cols[i].Bytes)
	}
	some := max(1, min(b.N, maxRowsBytes*b.N/max(size, 1), column.MaxWireRows/max(1, len(b.Cols))))
	for from := 0; from < b.N; from += some {
		w.beginMessage(msgRows, scan)
		w.frame = binary.AppendUvarint(w.frame, uint64(origin))
		w.frame = b.AppendWire(w.frame, from, min(from+some, b.N))
		if err := w.endMessage(); err != nil {
			return err
		}
	}
	return nil
}

// Pane implements Outlet.
func (w *Writer) Pane(scan int, start, rows int64, t *aggregate.Table) error {
	if w.scratch == nil {
		w.scratch = make([]byte, 0, 64<<10)
	}
	return t.Pieces(w.scratch, func(piece []byte) error {
		w.scratch = piece
		w.beginMessage(msgPane, scan)
		w.frame = binary.AppendVarint(binary.AppendVarint(w.frame, start), rows)
		w.frame = append(w.frame, piece...)
		rows = 0 // they are counted with the first piece
		return w.endMessage()
	})
}

// Advance implements Outlet.
func (w *Writer) Advance(scan, origin int, t int64) error {
	w.beginMessage(msgAdvance, scan)
	w.frame = binary.AppendVarint(binary.AppendUvarint(w.frame, uint64(origin)), t)
	return w.endMessage()
}

// Quiet implements Outlet.
func (w *Writer) Quiet(scan, origin int) error {
	w.beginMessage(msgQuiet, scan)
	w.frame = binary.AppendUvarint(w.frame, uint64(origin))
	return nil
}

// Ended implements Outlet.
func (w *Writer) Ended(scan, origin int) error {
	w.beginMessage(msgEnded, scan)
	w.frame = binary.AppendUvarint(w.frame, uint64(origin))
	return w.endMessage()
}

// Reader tells a tail what frames say.
type Reader struct {
	to *Query
	// open are the origins that are read elsewhere and have not ended.
	open map[[2]int]bool
}

// NewReader tells a tail of the origins that are read elsewhere, each a scan and an origin of it.
func NewReader(to *Query, elsewhere [][2]int) *Reader {
	r := &Reader{to: to, open: map[[2]int]bool{}}
	for _, o := range elsewhere {
		r.open[o] = true
	}
	return r
}

// Open is how many origins have not ended.
func (r *Reader) Open() int { return len(r.open) }

// maxScans bounds what is read as a number of a scan or origin.
const maxScans = 1 << 20

// Read tells the tail what a frame says. The error is column.ErrWire, or what the tail came to.
func (r *Reader) Read(frame []byte) error {
	w := column.NewWire(frame)
	for w.Len() > 0 {
		if err := r.readMessage(w); err != nil {
			return err
		}
	}
	return w.Err()
}

func (r *Reader) readMessage(w *column.Wire) error {
	kind, scan, origin := w.Byte(), w.Count(maxScans), 0
	if kind != msgPane {
		origin = w.Count(maxScans)
	}
	if w.Err() != nil {
		return w.Err()
	}
	at := [2]int{scan, origin}
	if kind == msgPane {
		start, rows := w.Varint(), w.Varint()
		if w.Err() != nil || !r.to.Fits(scan, 0) || rows < 0 {
			return column.ErrWire
		}
		return r.to.Pane(scan, start, rows, w)
	}
	if !r.open[at] {
		return fmt.Errorf("%w: there is no source %d of scan %d elsewhere", column.ErrWire, origin, scan)
	}
	switch kind {
	case msgRows:
		return r.to.Rows(scan, origin, w)
	case msgAdvance:
		t := w.Varint()
		if w.Err() != nil {
			return w.Err()
		}
		return r.to.Advance(scan, origin, t)
	case msgQuiet:
		return r.to.Quiet(scan, origin)
	case msgEnded:
		delete(r.open, at)
		return r.to.Ended(scan, origin)
	}
	return column.ErrWire
}
