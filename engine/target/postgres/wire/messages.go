package wire

import (
	"encoding/binary"
	"math"
)

// ProtocolError is an answer that PostgreSQL does not give.
type ProtocolError struct{ text string }

func (e *ProtocolError) Error() string { return "protocol error: " + e.text }

func simpleQuery(sql string) []byte {
	m := binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(sql)+5))
	return append(append(m, sql...), 0)
}

// BindHead is a Bind message of the unnamed portal up to the number of parameter formats.
func BindHead(name string, params int) []byte {
	head := append(append([]byte{'B', 0, 0, 0, 0, 0}, name...), 0)
	return binary.BigEndian.AppendUint16(head, uint16(params))
}

// ParseMessage is a Parse message; without types the server chooses them.
func ParseMessage(name, sql string, types []uint32) []byte {
	m := append(append([]byte{'P', 0, 0, 0, 0}, name...), 0)
	m = append(append(m, sql...), 0)
	m = binary.BigEndian.AppendUint16(m, uint16(len(types)))
	for _, oid := range types {
		m = binary.BigEndian.AppendUint32(m, oid)
	}
	binary.BigEndian.PutUint32(m[1:], uint32(len(m)-1))
	return m
}

// Once executes a statement without parameters; what follows it belongs to the same round trip.
func Once(sql string) []byte {
	m := ParseMessage("", sql, nil)
	at := len(m)
	m = append(append(m, BindHead("", 0)...), 0, 0, 0, 0) // no parameters, and all columns as text
	binary.BigEndian.PutUint32(m[at+1:], uint32(len(m)-at-1))
	return append(m, ExecuteOnly...)
}

// ExecuteAndSync runs the unnamed portal for all rows and ends the round trip.
var ExecuteAndSync = []byte{'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, 'S', 0, 0, 0, 4}

// copyFailAndSync ends a COPY FROM STDIN. The Sync of the request was read, and ignored, as one of its rows' messages.
var copyFailAndSync = func() []byte {
	const why = "a statement of a run sends no rows"
	m := binary.BigEndian.AppendUint32([]byte{'f'}, uint32(len(why)+5))
	return append(append(append(m, why...), 0), 'S', 0, 0, 0, 4)
}()

// CloseStatement is a Close message; there need not be such a statement.
func CloseStatement(name string) []byte {
	m := []byte{'C', 0, 0, 0, byte(min(len(name)+6, math.MaxUint8)), 'S'}
	return append(append(m, name...), 0)
}

// The messages that are always the same.
var (
	BeginMessage    = simpleQuery("BEGIN")
	CommitMessage   = simpleQuery("COMMIT")
	RollbackMessage = simpleQuery("ROLLBACK")
	// Terminate ends the session.
	Terminate = []byte{'X', 0, 0, 0, 4}
)
