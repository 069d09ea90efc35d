package snowflake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// The codes of errors that have no number because the account did not send them.
const (
	codeTimeout    = "client_timeout"
	codeConnection = "connection_lost"
	codeCancelled  = "client_cancelled"
	codeForbidden  = "client_refused"
)

// timeoutError is a statement that ran into the statement timeout.
type timeoutError struct {
	after    time.Duration
	answered bool
}

func (e *timeoutError) Error() string {
	if e.answered {
		return fmt.Sprintf("statement cancelled: it took longer than the statement timeout of %v", e.after)
	}
	return fmt.Sprintf("statement given up: it took longer than the statement timeout of %v, and the account did not "+
		"confirm its cancellation", e.after)
}

// Timeout marks the error as net.Error does.
func (e *timeoutError) Timeout() bool { return true }

type cancelledError struct{}

func (*cancelledError) Error() string { return "cancelled by Loadstone" }

// The numbers of Snowflake's errors that this driver acts upon.
const (
	numberCancelled   = 604
	numberTimeout     = 630
	numberNoWarehouse = 606

	numberSessionGone    = 390111
	numberSessionExpired = 390112
	numberMasterExpired  = 390114
	numberSessionInvalid = 390104
	numberMasterInvalid  = 390113
	numberMasterGone     = 390115
)

// numbers maps Snowflake's numbers onto classes; docs/guides/snowflake.md has the table
// with what to do about each. Numbers that are not here go by their SQLSTATE.
var numbers = map[int]engine.ErrorClass{
	numberCancelled:   engine.ErrClassCancelled,
	numberTimeout:     engine.ErrClassTimeout,
	612:               engine.ErrClassTimeout, // abandoned: its client has gone
	numberNoWarehouse: engine.ErrClassResource,
	607:               engine.ErrClassResource, // the warehouse does not start
	609:               engine.ErrClassResource, // the warehouse was suspended under the statement
	625:               engine.ErrClassLock,     // waited too long for a lock, or too many wait for it
	628:               engine.ErrClassTimeout,  // queued for longer than STATEMENT_QUEUED_TIMEOUT_IN_SECONDS
	639:               engine.ErrClassThrottled,
	904:               engine.ErrClassSyntax,
	1003:              engine.ErrClassSyntax,
	2003:              engine.ErrClassSyntax,
	2004:              engine.ErrClassSyntax,
	2043:              engine.ErrClassSyntax,
	numberPrivileges:  engine.ErrClassAuth,
	90073:             engine.ErrClassResource, // the resource monitor's quota is used up
	90082:             engine.ErrClassSerialization,
	100072:            engine.ErrClassConstraint, // NULL in a NOT NULL column
	200001:            engine.ErrClassConstraint, // primary key, hybrid tables
	200009:            engine.ErrClassConstraint, // foreign key, hybrid tables
	200011:            engine.ErrClassConstraint, // unique key, hybrid tables
	300002:            engine.ErrClassOther,

	numberSessionGone: engine.ErrClassConnection, numberSessionExpired: engine.ErrClassConnection,
	numberSessionInvalid: engine.ErrClassConnection,
	numberMasterExpired:  engine.ErrClassConnection, numberMasterInvalid: engine.ErrClassConnection,
	numberMasterGone: engine.ErrClassConnection,
}

// states maps SQLSTATEs and their two-digit classes; the longer match wins.
var states = map[string]engine.ErrorClass{
	"02": engine.ErrClassSyntax, // an object that does not exist
	"08": engine.ErrClassConnection, "0A": engine.ErrClassSyntax, "22": engine.ErrClassData,
	"23": engine.ErrClassConstraint, "28": engine.ErrClassAuth,
	"25": engine.ErrClassOther, "40": engine.ErrClassSerialization, "42501": engine.ErrClassAuth,
	"42": engine.ErrClassSyntax,
	"53": engine.ErrClassResource, "54": engine.ErrClassResource, "57014": engine.ErrClassCancelled,
	"57P03": engine.ErrClassResource,
}

func classOf(e *sf.SnowflakeError) engine.ErrorClass {
	if c, ok := numbers[e.Number]; ok {
		return c
	}
	switch {
	case e.Number >= 390000 && e.Number < 396000: // sign-in
		return engine.ErrClassAuth
	case e.Number >= 260000 && e.Number < 265000: // gosnowflake's own: it did not understand an answer
		return engine.ErrClassConnection
	}
	if c, ok := states[e.SQLState]; ok {
		return c
	}
	if len(e.SQLState) >= 2 {
		if c, ok := states[e.SQLState[:2]]; ok {
			return c
		}
	}
	return engine.ErrClassOther
}

// certain reports that a statement which cannot be described cannot be executed
// either: a syntax error, a missing object or privilege.
func certain(e *sf.SnowflakeError) bool {
	switch e.Number {
	case 904, 1003, 2003, 2004, 2043, 2140, numberPrivileges:
		return true
	}
	return false
}

// sessionEnded reports that the account no longer knows the session; what was asked has not been done.
func sessionEnded(err error) bool {
	var e *sf.SnowflakeError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Number {
	case numberSessionGone, numberSessionExpired, numberMasterExpired, numberSessionInvalid, numberMasterInvalid,
		numberMasterGone:
		return true
	}
	return false
}

// breaksSession reports that a session must not be used after this error.
func breaksSession(err error) bool {
	return err != nil && (sessionEnded(err) || lost(err) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, target.ErrTooLarge) ||
		errors.Is(err, errNotUndone))
}

// variable are the parts of a message that differ by statement: kept, they would
// make one error many.
var variable = regexp.MustCompile(
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|\b[0-9]{13,}\b`)

// Classify maps an error onto a class by Snowflake's number, its SQLSTATE, or by its nature when there is none.
func (d *database) Classify(err error) engine.ExecutionError {
	var (
		timeout   *timeoutError
		cancelled *cancelledError
		status    *statusError
		forbidden *forbiddenError
		stage     *stageError
		server    *sf.SnowflakeError
		network   net.Error
	)
	switch {
	case err == nil:
		return engine.ExecutionError{Class: engine.ErrClassOther, Message: "no error"}
	case errors.As(err, &timeout):
		return engine.ExecutionError{Class: engine.ErrClassTimeout, Code: codeTimeout, Message: timeout.Error()}
	case errors.As(err, &cancelled):
		return engine.ExecutionError{Class: engine.ErrClassCancelled, Code: codeCancelled, Message: cancelled.Error()}
	case errors.As(err, &stage):
		return engine.ExecutionError{Class: stage.class, Code: stage.code, Message: stage.said}
	case errors.As(err, &server):
		return engine.ExecutionError{Class: classOf(server), Code: fmt.Sprintf("%06d", server.Number),
			Message: variable.ReplaceAllString(sentence(server), "…")}
	case errors.As(err, &status):
		class := engine.ErrClassResource
		if status.code == 429 || status.code == 503 {
			class = engine.ErrClassThrottled
		}
		return engine.ExecutionError{Class: class, Code: fmt.Sprintf("http_%d", status.code), Message: status.Error()}
	case errors.As(err, &forbidden):
		return engine.ExecutionError{Class: engine.ErrClassOther, Code: codeForbidden, Message: forbidden.Error()}
	case errors.Is(err, context.Canceled):
		return engine.ExecutionError{Class: engine.ErrClassCancelled, Code: codeCancelled, Message: "cancelled by Loadstone"}
	case errors.Is(err, context.DeadlineExceeded):
		return engine.ExecutionError{Class: engine.ErrClassTimeout, Code: codeTimeout, Message: "no answer in time"}
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return engine.ExecutionError{Class: engine.ErrClassConnection, Code: codeConnection,
			Message: "connection lost: " + networkWords(err)}
	}
	return engine.ExecutionError{Class: engine.ErrClassOther, Message: err.Error()}
}

// networkWords leaves out addresses and ports, which differ by connection.
func networkWords(err error) string {
	var (
		number syscall.Errno
		op     *net.OpError
		dns    *net.DNSError
	)
	switch {
	case errors.Is(err, net.ErrClosed):
		return "it was closed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the account closed it"
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &dns):
		return "its name is not known"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return "no answer"
}

// sentence returns what the account said, without codes and query ids.
func sentence(err error) string {
	var e *sf.SnowflakeError
	if !errors.As(err, &e) {
		var status *statusError
		if errors.As(err, &status) {
			return status.Error() + "."
		}
		return err.Error()
	}
	text := e.Message
	if len(e.MessageArgs) > 0 {
		text = fmt.Sprintf(e.Message, e.MessageArgs...)
	}
	text = strings.TrimSpace(strings.Join(strings.Fields(text), " "))
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
