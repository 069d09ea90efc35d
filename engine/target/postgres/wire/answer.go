package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// MaxMessage bounds one message from the server. PostgreSQL itself cannot send
// a row over 1 GB; anything longer means that the stream is out of step.
const MaxMessage = 1 << 30

// Answer follows the messages of one extended-query round trip up to
// ReadyForQuery. It is fed arbitrary slices of the stream, keeps only what it
// must across them, and allocates nothing unless the server reports an error.
type Answer struct {
	Rows     int64 // DataRow messages, or the count of the last CommandComplete when there were none
	Err      *pgconn.PgError
	Done     bool
	TxStatus byte
	// rolledBack: the last command was answered with ROLLBACK.
	RolledBack bool
	Broken     *ProtocolError
	// KeepRow asks for the first row; row is its body, nil when there was none, or when
	// it is longer than maxKept and long is set. Its memory is reused by the next answer.
	KeepRow bool
	Long    bool
	// Reply is to be sent before the rest of the answer comes; nil for nothing. Who sends it takes it away.
	Reply []byte
	// RowsSent: the request has the rows of a COPY FROM STDIN.
	RowsSent bool
	// CopyRefused: the statement was a COPY FROM STDIN, which was told that there are no rows.
	CopyRefused bool

	// The message that is being read.
	kind  byte
	head  [5]byte
	nhead uint8
	Left  int    // bytes of the body still to come
	keep  []byte // body so far, of the kinds that are looked at

	Row    []byte
	rowMem []byte
	// FirstByte is when bytes were read first, zero before; an event loop does not ask for it.
	FirstByte time.Time
}

// Reset makes the answer ready for the next round trip. A message that has
// begun to arrive after ReadyForQuery is carried over.
func (a *Answer) Reset() {
	a.Rows, a.Err, a.Done, a.RolledBack, a.CopyRefused = 0, nil, false, false, false
	if a.KeepRow {
		a.KeepRow, a.Long, a.Row = false, false, nil
	}
}

// arrived notes when the first of an answer's bytes were read.
func (a *Answer) arrived(n int) {
	if n > 0 && a.FirstByte.IsZero() {
		a.FirstByte = time.Now()
	}
}

// Feed consumes p. After broken it must not be called again.
func (a *Answer) Feed(p []byte) {
	for len(p) > 0 {
		// The common case: a whole message lies in p.
		if a.nhead == 0 && len(p) >= 5 {
			n := int(binary.BigEndian.Uint32(p[1:5]))
			if n < 4 || n > MaxMessage {
				a.fail(fmt.Sprintf("message %q has the length %d", p[0], n))
				return
			}
			if len(p) >= n+1 {
				a.message(p[0], p[5:n+1])
				if a.Broken != nil {
					return
				}
				p = p[n+1:]
				continue
			}
		}
		p = a.piece(p)
		if a.Broken != nil {
			return
		}
	}
}

// piece reads a part of a message that does not lie in one slice and returns the rest.
func (a *Answer) piece(p []byte) []byte {
	if a.nhead < 5 {
		n := copy(a.head[a.nhead:], p)
		a.nhead += uint8(n)
		p = p[n:]
		if a.nhead < 5 {
			return p
		}
		size := int(binary.BigEndian.Uint32(a.head[1:]))
		if size < 4 || size > MaxMessage {
			a.fail(fmt.Sprintf("message %q has the length %d", a.head[0], size))
			return nil
		}
		a.kind, a.Left = a.head[0], size-4
		a.keep = a.keep[:0]
		if !known(a.kind) {
			a.fail(fmt.Sprintf("unexpected message %q", a.kind))
			return nil
		}
		if a.kind == 'D' && a.KeepRow && a.Rows == 0 && a.Left > maxCachedBytes {
			a.Long = true
		}
		if a.needsBody(a.kind) && a.Left > 1<<20 {
			a.fail(fmt.Sprintf("message %q has the length %d", a.kind, size))
			return nil
		}
	}
	n := min(a.Left, len(p))
	if a.needsBody(a.kind) {
		a.keep = append(a.keep, p[:n]...)
	}
	a.Left -= n
	if a.Left == 0 {
		a.nhead = 0
		a.message(a.kind, a.keep)
	}
	return p[n:]
}

// needsBody reports whether a message's body is needed.
func (a *Answer) needsBody(kind byte) bool {
	return kind == 'C' || kind == 'E' || kind == 'Z' || kind == 'D' && a.KeepRow && a.Rows == 0 && !a.Long
}

func known(kind byte) bool {
	switch kind {
	case 'D', 'C', '2', 'Z', 'E', 'N', 'S', 'A', 'I', 'T', 'n', '1', '3', 't', 's', 'd', 'c', 'G', 'H':
		return true
	}
	return false
}

// message handles one message; body is empty for the kinds that keeps skips.
func (a *Answer) message(kind byte, body []byte) {
	if a.Done {
		// The server speaks unasked in these ways only; an error is its farewell,
		// which the next operation will notice. Anything else would be taken for
		// the next answer.
		if kind != 'N' && kind != 'S' && kind != 'A' && kind != 'E' {
			a.fail(fmt.Sprintf("message %q after ReadyForQuery", kind))
		}
		return
	}
	switch kind {
	case 'D': // DataRow
		switch {
		case a.Rows > 0 || !a.KeepRow:
		case a.Long || len(body) > maxCachedBytes:
			a.Long = true
		default:
			a.rowMem = append(a.rowMem[:0], body...)
			a.Row = a.rowMem
		}
		a.Rows++
	case 'C': // CommandComplete
		if n, ok := affected(body); ok && a.Rows == 0 {
			a.Rows = n
		}
		a.RolledBack = len(body) == len("ROLLBACK\x00") && string(body) == "ROLLBACK\x00"
	case 'Z': // ReadyForQuery
		if len(body) != 1 {
			a.fail("ReadyForQuery without a status")
			return
		}
		a.TxStatus = body[0]
		a.Done = true
	case 'E': // ErrorResponse
		if e := parseError(body); a.Err == nil || Fatal(e) {
			a.Err = e
		}
	case 'G': // CopyInResponse
		if a.RowsSent {
			break
		}
		a.Reply, a.CopyRefused = copyFailAndSync, true
	case '2', 'N', 'S', 'A', 'I', 'T', 'n', '1', '3', 't', 's', 'd', 'c', 'H':
		// BindComplete, NoticeResponse, ParameterStatus, NotificationResponse,
		// EmptyQueryResponse, RowDescription, NoData, ParseComplete,
		// CloseComplete, ParameterDescription, PortalSuspended, CopyData, CopyDone, CopyOutResponse: nothing to keep.
	default:
		a.fail(fmt.Sprintf("unexpected message %q", kind))
	}
}

func (a *Answer) fail(text string) { a.Broken = &ProtocolError{text} }

// affected returns the number at the end of a command tag ("INSERT 0 5", "SELECT 1").
func affected(tag []byte) (int64, bool) {
	end := len(tag)
	if end > 0 && tag[end-1] == 0 {
		end--
	}
	var n, scale int64 = 0, 1
	i := end
	for i > 0 && tag[i-1] >= '0' && tag[i-1] <= '9' {
		i--
		if end-i > 18 {
			return 0, false
		}
		n += int64(tag[i]-'0') * scale
		scale *= 10
	}
	return n, i < end && i > 0 && tag[i-1] == ' '
}

// parseError reads an ErrorResponse; unknown and malformed fields are left out.
func parseError(body []byte) *pgconn.PgError {
	e := &pgconn.PgError{Severity: "ERROR", Code: "XX000", Message: "the server reported an error without a message"}
	for len(body) > 1 {
		field := body[0]
		body = body[1:]
		end := 0
		for end < len(body) && body[end] != 0 {
			end++
		}
		text := string(body[:end])
		if field != 0 {
			setErrorField(e, field, text)
		}
		if end == len(body) {
			break
		}
		body = body[end+1:]
	}
	return e
}

func setErrorField(e *pgconn.PgError, field byte, text string) {
	switch field {
	case 'S':
		if e.SeverityUnlocalized == "" {
			e.Severity = text
		}
	case 'V':
		e.SeverityUnlocalized = text
	case 'C':
		e.Code = text
	case 'M':
		e.Message = text
	case 'D':
		e.Detail = text
	case 'H':
		e.Hint = text
	case 's':
		e.SchemaName = text
	case 't':
		e.TableName = text
	case 'c':
		e.ColumnName = text
	case 'n':
		e.ConstraintName = text
	}
}

// Fatal reports whether the session ends with the error.
func Fatal(e *pgconn.PgError) bool {
	for _, s := range []string{e.Severity, e.SeverityUnlocalized} {
		if s == "FATAL" || s == "PANIC" {
			return true
		}
	}
	return false
}
