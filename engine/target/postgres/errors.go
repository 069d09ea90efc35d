package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/dsn"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// The codes of errors that have no SQLSTATE because the server did not send them.
const (
	codeTimeout    = "client_timeout"
	codeConnection = "connection_lost"
	codeProtocol   = "protocol_error"
	codeCancelled  = "client_cancelled"
)

// timeoutError is a statement that ran into the statement timeout.
type timeoutError struct {
	after     time.Duration
	confirmed bool
}

func (e *timeoutError) Error() string {
	if e.confirmed {
		return fmt.Sprintf("statement cancelled: it took longer than the statement timeout of %v", e.after)
	}
	return fmt.Sprintf("statement given up: no answer within the statement timeout of %v, nor to its cancellation",
		e.after)
}

// Timeout marks the error as net.Error does.
func (e *timeoutError) Timeout() bool { return true }

// noAnswerError is the error of an operation whose answer never came.
type noAnswerError struct{ error }

func (e noAnswerError) Unwrap() error { return e.error }

// Is implements target.ErrNoAnswer.
func (noAnswerError) Is(err error) bool { return err == target.ErrNoAnswer }

// answered is an error that the server sent. What a pooler says of a server that it has lost is no answer of that
// server: of the class 08, and PgBouncer's own.
func answered(err *pgconn.PgError) error {
	if wire.Fatal(err) && (strings.HasPrefix(err.Code, "08") || err.Code == "57P02") {
		return noAnswerError{err}
	}
	return err
}

// Classify maps an error onto a class by its SQLSTATE, or by its nature when the server sent none.
func (d *database) Classify(err error) engine.ExecutionError {
	var (
		timeout  *timeoutError
		protocol *wire.ProtocolError
		state    *stateError
		server   *pgconn.PgError
		network  net.Error
	)
	switch {
	case err == nil:
		return engine.ExecutionError{Class: engine.ErrClassOther, Message: "no error"}
	case errors.As(err, &timeout):
		return engine.ExecutionError{Class: engine.ErrClassTimeout, Code: codeTimeout, Message: timeout.Error()}
	case errors.As(err, &state):
		return engine.ExecutionError{Class: engine.ErrClassOther, Code: target.CodeTransactionState, Message: state.Error()}
	case errors.As(err, &server):
		if known := explained(err); known != nil {
			return engine.ExecutionError{Class: classOf(server.Code), Code: server.Code,
				Message: known.Message + " " + known.Hint}
		}
		return engine.ExecutionError{Class: classOf(server.Code), Code: server.Code, Message: server.Message}
	case errors.As(err, &protocol):
		return engine.ExecutionError{Class: engine.ErrClassConnection, Code: codeProtocol, Message: protocol.Error()}
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

// networkWords leaves out addresses and ports, which differ by connection and
// would fill the dictionary with the same error.
func networkWords(err error) string {
	var number syscall.Errno
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed it"
	case errors.Is(err, net.ErrClosed):
		return "it was closed"
	case errors.As(err, &number):
		return number.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// classes maps SQLSTATEs and their two-digit classes; the longer match wins.
var classes = map[string]engine.ErrorClass{
	"08":    engine.ErrClassConnection,
	"22":    engine.ErrClassData,
	"23":    engine.ErrClassConstraint,
	"25006": engine.ErrClassAuth, // read-only transaction: the wrong server, or no right to write
	"25":    engine.ErrClassOther,
	"28":    engine.ErrClassAuth,
	"3D":    engine.ErrClassAuth,
	"40001": engine.ErrClassSerialization,
	"40P01": engine.ErrClassDeadlock,
	"40":    engine.ErrClassSerialization,
	"42501": engine.ErrClassAuth,
	"42":    engine.ErrClassSyntax,
	"44":    engine.ErrClassConstraint,
	"53300": engine.ErrClassThrottled,
	"53":    engine.ErrClassResource,
	"54":    engine.ErrClassResource,
	"55P03": engine.ErrClassLock,
	"55006": engine.ErrClassLock,
	"57014": engine.ErrClassCancelled,
	"57P01": engine.ErrClassConnection,
	"57P02": engine.ErrClassConnection,
	"57P03": engine.ErrClassConnection,
	"57P05": engine.ErrClassConnection,
	"25P03": engine.ErrClassConnection,
	"58":    engine.ErrClassResource,
}

func classOf(sqlstate string) engine.ErrorClass {
	if c, ok := classes[sqlstate]; ok {
		return c
	}
	if len(sqlstate) >= 2 {
		if c, ok := classes[sqlstate[:2]]; ok {
			return c
		}
	}
	return engine.ErrClassOther
}

// sentence returns what the server said, without codes and addresses.
func sentence(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Message
	}
	return networkWords(err)
}

// explain turns an error of connecting, which was given so much time, into what a user can act on. The
// password appears in no field; Cause is kept for the log, where pgconn masks it.
func (d *database) explain(err error, within time.Duration) error {
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	out := &engine.Error{Code: engine.CodeTarget, Cause: err}
	host, where := d.conn.Host, d.address()
	if known := d.explainAnswer(err, where, within); known != nil {
		return known
	}
	err = d.decisive(err)
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		verify    *tls.CertificateVerificationError
	)
	text := err.Error()
	closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
	if refusedByPeer(err) != "" || closed {
		if out.Message, out.Hint = d.certificateExpired(time.Now()); out.Message != "" {
			return out
		}
	}
	switch {
	case errors.As(err, &dns):
		out.Message = fmt.Sprintf("The host name %q cannot be found.", host)
		out.Hint = "Check its spelling and whether this machine can resolve it."
	case errors.Is(err, syscall.ECONNREFUSED):
		out.Message = fmt.Sprintf("Nothing accepts connections at %s.", where)
		out.Hint = "Check the port, that PostgreSQL is running there, and that it listens on that address (listen_addresses)."
	case errors.Is(err, os.ErrNotExist) && strings.HasPrefix(host, "/"):
		out.Message = fmt.Sprintf("There is no PostgreSQL socket in %s for port %d.", host, d.conn.Port)
		out.Hint = "Check that the server is running and its unix_socket_directories, or give a host name."
	case errors.Is(err, os.ErrPermission):
		out.Message = fmt.Sprintf("This process may not use %s.", where)
		out.Hint = "Check the rights of the socket or of the certificate files."
	case errors.As(err, &authority):
		out.Message = fmt.Sprintf("The TLS certificate of %s is signed by an authority that is not trusted here.", where)
		out.Hint = "Give the authority's certificate as sslrootcert: the PEM text, or for yourself the file that holds it. " +
			"Or leave sslrootcert out and use sslmode=require, to encrypt without checking who answers."
	case errors.As(err, &hostname):
		out.Message = fmt.Sprintf("The TLS certificate of %s is for another host name.", where)
		out.Hint = "Use the name in the certificate, or sslmode=verify-ca."
	case errors.As(err, &invalid), errors.As(err, &verify):
		out.Message = fmt.Sprintf("The TLS certificate of %s is not valid: %s.", where, networkWords(err))
		out.Hint = "Renew the certificate, or check this machine's clock."
	case refusedByPeer(err) != "":
		out.Message = fmt.Sprintf("%s refuses the client certificate: %s.", where, refusedByPeer(err))
		out.Hint = "Give a certificate and its key (sslcert, sslkey) that an authority of the server's ssl_ca_file has " +
			"signed."
	case strings.Contains(text, "refused TLS"):
		out.Message = fmt.Sprintf("%s does not offer TLS, which sslmode asks for.", where)
		out.Hint = "Use sslmode=prefer or sslmode=disable, or switch TLS on in the server (ssl = on)."
	case strings.Contains(text, "protocol version not supported"), strings.Contains(text, "no supported versions"):
		out.Message = fmt.Sprintf("TLS with %s failed: it has no version of TLS that the connection allows.", where)
		out.Hint = "Look at ssl_min_protocol_version and ssl_max_protocol_version, of the connection and of the server."
	case errors.As(err, &record), errors.As(err, &alert), strings.Contains(text, "tls error"):
		out.Message = fmt.Sprintf("TLS with %s failed.", where)
		out.Hint = "Check that this is PostgreSQL's port, and sslmode, sslcert and sslkey."
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err), errors.Is(err, syscall.ETIMEDOUT):
		out.Message = fmt.Sprintf("%s did not answer within %v.", where, within)
		out.Hint = "Check host and port, firewalls and security groups, and that the server is not overloaded."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		out.Message = fmt.Sprintf("There is no route from this machine to %s.", where)
		out.Hint = "Check the network, the VPN and the address."
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		out.Message = "This process has no file descriptors left for another connection."
		out.Hint = "Raise the limit (ulimit -n), or use fewer connections or more nodes."
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("connecting: %w", context.Canceled)
	case closed:
		out.Message = fmt.Sprintf("%s closed the connection while it was being set up.", where)
		out.Hint = "Check that this is PostgreSQL's port, and the server's log; a proxy or a full server may refuse this way."
		if c := d.conn.TLSConfig; c != nil && len(c.Certificates) > 0 {
			// What the server says of a certificate is lost where it closes before it is read.
			out.Hint = "Check sslcert and sslkey, and the server's log: one that does not take a certificate may close this way."
		}
	case strings.Contains(text, "received unexpected message"), strings.Contains(text, "unknown message type"),
		strings.Contains(text, "invalid length"), strings.Contains(text, "invalid body length"),
		strings.Contains(text, "invalid message"):
		out.Message = fmt.Sprintf("What answers at %s is not PostgreSQL.", where)
		out.Hint = "Check the port."
	case strings.Contains(text, "authentication"), strings.Contains(text, "SCRAM"), strings.Contains(text, "password"):
		out.Message = fmt.Sprintf("Logging in to %s failed: the server asks for a kind of log-in that the connection does "+
			"not provide.", where)
		out.Hint = "Check user and password, and the server's pg_hba.conf."
	default:
		out.Message = fmt.Sprintf("Connecting to %s failed.", where)
		out.Hint = "The server's log has the details."
	}
	return out
}

// explainAnswer explains an error of a server that has answered: with an error, with the wrong role, or, once it had
// let the connection in, with nothing. It is nil for every other error.
func (d *database) explainAnswer(err error, where string, within time.Duration) *engine.Error {
	if message, hint := d.lacksRole(err); message != "" {
		return &engine.Error{Code: engine.CodeTarget, Cause: err, Message: message, Hint: hint}
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		if known := explained(err); known != nil {
			return known
		}
		message, hint := d.explainServer(server, where)
		return &engine.Error{Code: engine.CodeTarget, Cause: err, Message: message, Hint: hint}
	}
	if text := err.Error(); strings.Contains(text, "AfterConnect error") ||
		strings.Contains(text, "ValidateConnect failed") {
		return d.unanswered(err, within)
	}
	return nil
}

// alerts are what a server says of a client certificate, by Go's words for them.
var alerts = []struct{ text, words string }{
	{"unknown certificate authority", "it does not know the authority that signed it"},
	{"error decrypting message", "it is not signed by the authority that it names"},
	{"expired certificate", "it has expired"},
	{"revoked certificate", "it has been revoked"},
	{"unsupported certificate", "it is of a kind that the server does not take"},
	{"certificate required", "there is none"},
	{"bad certificate", "it is not valid"},
	{"unknown certificate", "it is not valid"},
}

// refusedByPeer says why the server refused the client's certificate; "" for other errors.
func refusedByPeer(err error) string {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return ""
	}
	for _, a := range alerts {
		if strings.Contains(op.Err.Error(), a.text) {
			return a.words
		}
	}
	return ""
}

// decisive leaves out of an error of connecting what did not decide. pgconn
// reports every attempt, and where plain text was tried too (sslmode=prefer),
// the want of TLS is not the reason.
func (d *database) decisive(err error) error {
	plain := slices.ContainsFunc(d.conn.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil })
	var failed *pgconn.ConnectError
	if !plain || !errors.As(err, &failed) {
		return err
	}
	attempts, several := failed.Unwrap().(interface{ Unwrap() []error })
	if !several {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(attempts.Unwrap()), func(e error) bool {
		return strings.Contains(e.Error(), "refused TLS") || strings.Contains(e.Error(), "tls error")
	})
	if len(rest) == 0 {
		return err
	}
	return errors.Join(rest...)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func (d *database) address() string {
	if strings.HasPrefix(d.conn.Host, "/") {
		return fmt.Sprintf("the socket in %s (port %d)", d.conn.Host, d.conn.Port)
	}
	return net.JoinHostPort(d.conn.Host, fmt.Sprint(d.conn.Port))
}

func (d *database) explainServer(e *pgconn.PgError, where string) (message, hint string) {
	switch e.Code {
	case "28P01", "28000":
		if d.conn.Password == "" && (e.Code == "28P01" || strings.Contains(e.Message, "password")) {
			return fmt.Sprintf("The server asks for a password of user %q, and the connection has none.", d.conn.User),
				"Put it into the connection: postgres://user:password@host:5432/database."
		}
	}
	if e.Code == "28P01" || e.Code == "28000" {
		if message, hint := d.certificateForOtherUser(e, where); message != "" {
			return message, hint
		}
	}
	switch e.Code {
	case "28P01":
		return fmt.Sprintf("The password for user %q is wrong.", d.conn.User),
			"Correct the user or the password of the connection."
	case "28000":
		if strings.Contains(e.Message, "client certificate") {
			return fmt.Sprintf("%s asks for a client certificate, and the connection has none.", where),
				"Give sslcert and sslkey: the PEM texts, or for yourself the files that hold them."
		}
		return fmt.Sprintf("%s does not let user %q in: %s.", where, d.conn.User, e.Message),
			"Check the user, sslmode, and the server's pg_hba.conf."
	case "3D000":
		return fmt.Sprintf("There is no database %q at %s.", d.conn.Database, where), "Check the database name, or create it."
	case "42501":
		return fmt.Sprintf("User %q may not do this: %s.", d.conn.User, e.Message), "Grant the right, or use another user."
	case "42704":
		if _, name, is := strings.Cut(e.Message, "unrecognized configuration parameter "); is {
			name = strings.Trim(name, `"`)
			hint = "Leave it out, or give it as options=-c name=value where it is a setting of the server."
			if near := schema.Nearest(name, dsn.Parameters); near != "" {
				hint = fmt.Sprintf("Did you mean %s?", near)
			}
			return fmt.Sprintf("The server knows no parameter %q of the connection.", name), hint
		}
	case "53300":
		return fmt.Sprintf("%s has no connections left: %s.", where, e.Message),
			"Use fewer connections, raise max_connections, or close other sessions."
	case "57P03":
		return fmt.Sprintf("%s is starting, stopping or recovering: %s.", where, e.Message), "Try again in a moment."
	case "57P01", "57P02":
		return fmt.Sprintf("%s is shutting down: %s.", where, e.Message), "Start it again."
	}
	return fmt.Sprintf("%s refused: %s (SQLSTATE %s).", where, strings.TrimSuffix(e.Message, "."), e.Code), e.Hint
}
