package wire

import (
	"net"

	"github.com/loadstone-db/loadstone/engine/target"
)

// Link carries one request and its answer.
type Link interface {
	// RoundTrip writes request and reads until the answer is done or broken.
	RoundTrip(request []byte, a *Answer) error
}

const readSize = 16 << 10

// streamLink works over any net.Conn: TLS, and systems without a faster path.
type streamLink struct {
	conn net.Conn
	buf  []byte
}

func (w *streamLink) RoundTrip(request []byte, a *Answer) error {
	if _, err := w.conn.Write(request); err != nil {
		return target.NotSent(err)
	}
	for !a.Done && a.Broken == nil {
		n, err := w.conn.Read(w.buf)
		a.arrived(n)
		a.Feed(w.buf[:n])
		if err != nil && !a.Done && a.Broken == nil {
			return err
		}
		if reply := a.Reply; reply != nil {
			a.Reply = nil
			if _, err := w.conn.Write(reply); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewLink takes the fastest path that the connection allows.
func NewLink(c net.Conn) Link {
	if w := newRawLink(c); w != nil {
		return w
	}
	return &streamLink{conn: c, buf: make([]byte, readSize)}
}
