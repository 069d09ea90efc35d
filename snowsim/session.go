package snowsim

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// session is one log-in. Statements of a session run one after the other, as in Snowflake.
type session struct {
	server *Server
	id     int64
	user   string
	client string // the name by which it has introduced itself

	// Under the server's mu.
	token, master          string
	expires, masterExpires time.Time
	issued                 []string // tokens of before: they too have "expired"
	closed                 bool

	// statementMu is held by the running statement.
	statementMu sync.Mutex
	// conn is pinned while the session is in a transaction; statementMu guards it.
	conn *pgxpool.Conn

	mu                                sync.Mutex
	role, warehouse, database, schema string
	parameters                        map[string]string            // set by the session
	defaults                          map[string]translate.Default // of the user and the account; not changed
	transaction                       bool
	open                              openTransaction
	used                              time.Time       // when its last statement ended
	jobs                              map[string]*job // by request id
	done                              []*job          // finished jobs whose results are kept, the oldest first
	doneBytes                         int
}

// Limits of the finished results that a session keeps for repeated requests.
const (
	maxResults     = 16
	maxResultBytes = 64 << 20
)

// view returns a copy of the session as a translator sees it.
func (sess *session) view() *translate.Session {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return &translate.Session{
		ID:            sess.id,
		User:          sess.user,
		Account:       strings.ToUpper(sess.server.opts.Account),
		Role:          sess.role,
		Warehouse:     sess.warehouse,
		Database:      sess.database,
		Schema:        sess.schema,
		Parameters:    sess.effective(),
		Defaults:      sess.defaults,
		Transaction:   sess.transaction,
		TransactionID: sess.open.id,
	}
}

// effective are the parameters that count: the session's, else the defaults. The caller holds mu.
func (sess *session) effective() map[string]string {
	all := make(map[string]string, len(sess.parameters)+len(sess.defaults))
	for name, d := range sess.defaults {
		all[name] = d.Value
	}
	maps.Copy(all, sess.parameters)
	return all
}

// defaultParameters are the session parameters that an account and a user decide, by upper-case name.
func defaultParameters(account, user map[string]string) map[string]translate.Default {
	all := make(map[string]translate.Default, len(account)+len(user))
	for name, value := range account {
		all[strings.ToUpper(name)] = translate.Default{Value: value, Level: "ACCOUNT"}
	}
	for name, value := range user {
		all[strings.ToUpper(name)] = translate.Default{Value: value, Level: "USER"}
	}
	return all
}

// apply applies a plan's effect to the session.
func (sess *session) apply(e translate.Effect) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	for _, c := range []struct{ at, to *string }{{&sess.database, e.Database}, {&sess.schema, e.Schema}, {&sess.role, e.Role},
		{&sess.warehouse, e.Warehouse}} {
		if c.to != nil {
			*c.at = *c.to
		}
	}
	for name, value := range e.Set {
		sess.parameters[strings.ToUpper(name)] = value
	}
	for _, name := range e.Unset {
		delete(sess.parameters, strings.ToUpper(name))
	}
}

// clientParameters are sent to the client at log-in and after each statement, with
// their defaults. CLIENT_STAGE_ARRAY_BINDING_THRESHOLD is 0, unlike on an account:
// the stand-in has no stages, so that array binds always come in the request.
var clientParameters = []struct {
	name string
	def  any
}{
	{"AUTOCOMMIT", true}, {"BINARY_OUTPUT_FORMAT", "HEX"}, {"CLIENT_PREFETCH_THREADS", 4},
	{"CLIENT_RESULT_CHUNK_SIZE", 160},
	{"CLIENT_SESSION_KEEP_ALIVE", false}, {"CLIENT_SESSION_KEEP_ALIVE_HEARTBEAT_FREQUENCY", 3600},
	{"CLIENT_STAGE_ARRAY_BINDING_THRESHOLD", 0},
	{"CLIENT_TELEMETRY_ENABLED", true}, {"DATE_OUTPUT_FORMAT", "YYYY-MM-DD"}, {goFormat, ""}, {pythonFormat, ""},
	{"QUERY_CONTEXT_CACHE_SIZE", 5},
	{"SERVICE_NAME", ""}, {"TIMESTAMP_OUTPUT_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF3 TZHTZM"},
	{"TIMESTAMP_TYPE_MAPPING", "TIMESTAMP_NTZ"}, {"TIMEZONE", "America/Los_Angeles"},
}

type parameter struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func (sess *session) parameterList() []parameter {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	out := make([]parameter, 0, len(clientParameters))
	effective := sess.effective()
	for _, p := range clientParameters {
		v := p.def
		if v == "" && (p.name == goFormat || p.name == pythonFormat) {
			v = sess.server.opts.Results
		}
		if set, ok := effective[p.name]; ok {
			switch p.def.(type) {
			case bool:
				v = strings.EqualFold(set, "true")
			case int:
				if n, err := strconv.Atoi(set); err == nil {
					v = n
				}
			default:
				v = set
			}
		}
		out = append(out, parameter{p.name, v})
	}
	return out
}

// The parameters that say in which form a driver takes rows.
const (
	goFormat     = "GO_QUERY_RESULT_FORMAT"
	pythonFormat = "PYTHON_CONNECTOR_QUERY_RESULT_FORMAT"
)

// resultFormat is the form in which the session's client takes rows.
func (sess *session) resultFormat() string {
	name := map[string]string{"Go": goFormat, "PythonConnector": pythonFormat}[sess.client]
	if name == "" {
		return "json"
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return cmp.Or(sess.effective()[name], sess.server.opts.Results)
}

// find returns the session of a token, or why there is none.
func (s *Server) find(token string) (*session, *protocol.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.tokens[token]
	if sess == nil {
		e := protocol.Refusal(protocol.CodeSessionGone,
			"Session no longer exists.  New login required to access the service.")
		return nil, &e
	}
	if token != sess.token || time.Now().After(sess.expires) {
		e := protocol.Refusal(protocol.CodeSessionExpired, "Your session has expired. Please login again.")
		return nil, &e
	}
	return sess, nil
}

// expire lets the token of a session expire now; the client has to renew it.
func (s *Server) expire(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess.expires = time.Time{}
}

// renew issues a new session token for a master token.
func (s *Server) renew(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Old  string `json:"oldSessionToken"`
		Kind string `json:"requestType"`
	}
	if err := protocol.Read(r, &req); err != nil {
		protocol.Write(w, protocol.Refusal("391903", "Invalid request: "+err.Error()+"."))
		return
	}
	s.mu.Lock()
	sess := s.masters[protocol.TokenOf(r)]
	switch {
	case sess == nil:
		s.mu.Unlock()
		protocol.Write(w, protocol.Refusal(protocol.CodeMasterInvalid, "Master token is invalid. Please login again."))
		return
	case time.Now().After(sess.masterExpires):
		s.mu.Unlock()
		protocol.Write(w, protocol.Refusal(protocol.CodeMasterExpired,
			"Authentication token has expired.  The user must authenticate again."))
		return
	}
	s.issue(sess)
	token, master := sess.token, sess.master
	s.mu.Unlock()
	s.counts.renewals.Add(1)
	protocol.Write(w, protocol.Success(map[string]any{"sessionToken": token,
		"validityInSecondsST": int64(s.opts.SessionValidity / time.Second),
		"masterToken":         master, "validityInSecondsMT": int64(s.opts.MasterValidity / time.Second),
		"sessionId": sess.id}))
}

// closeSession answers POST /session?delete=true.
func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) {
	sess, problem := s.find(protocol.TokenOf(r))
	if problem != nil && *problem.Code == protocol.CodeSessionExpired {
		// The client will not come back to end it with another token.
		s.mu.Lock()
		sess = s.tokens[protocol.TokenOf(r)]
		s.mu.Unlock()
	}
	if sess != nil && r.URL.Query().Get("delete") == "true" {
		s.end(sess)
	}
	if problem != nil {
		protocol.Write(w, *problem)
		return
	}
	protocol.Write(w, protocol.Success(nil))
}

// end cancels what a session still does and forgets it. Ending twice is safe.
func (s *Server) end(sess *session) {
	s.mu.Lock()
	delete(s.sessions, sess.id)
	delete(s.masters, sess.master)
	delete(s.tokens, sess.token)
	for _, token := range sess.issued {
		delete(s.tokens, token)
	}
	sess.closed = true
	s.mu.Unlock()
	sess.mu.Lock()
	jobs := make([]*job, 0, len(sess.jobs))
	for _, j := range sess.jobs {
		jobs = append(jobs, j)
	}
	sess.mu.Unlock()
	for _, j := range jobs {
		j.cancel(errCancelled)
	}
	s.mu.Lock()
	for _, j := range jobs {
		delete(s.results, j.queryID)
	}
	s.mu.Unlock()
	sess.statementMu.Lock()
	defer sess.statementMu.Unlock()
	sess.release(true)
}

// release returns a pinned connection to the pool, rolled back or not. The caller holds statementMu.
func (sess *session) release(rollback bool) {
	sess.mu.Lock()
	sess.transaction, sess.open = false, openTransaction{}
	sess.mu.Unlock()
	if sess.conn == nil {
		return
	}
	conn := sess.conn
	sess.conn = nil
	if rollback {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(sess.server.ctx), 5*time.Second)
		defer cancel()
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			_ = conn.Conn().Close(ctx) // the pool makes another
		}
	}
	conn.Release()
}

// sweep ends sessions whose master token has expired.
func (s *Server) sweep() {
	tick := time.NewTicker(min(10*time.Second, s.opts.IdleTransaction/4))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			var gone []*session
			s.mu.Lock()
			for _, sess := range s.sessions {
				if now.After(sess.masterExpires) {
					gone = append(gone, sess)
				}
			}
			s.mu.Unlock()
			for _, sess := range gone {
				s.end(sess)
			}
			s.abortBlockers(now)
		}
	}
}

// setNamespace sets the database and the schema of a new session.
func (s *Server) setNamespace(
	ctx context.Context,
	sess *session,
	database, schema string,
	validate bool,
) *protocol.Envelope {
	use := func(sql, what string) *protocol.Envelope {
		p, err := s.translator.Plan(ctx, sess.view(), sql, nil)
		if err == nil && p.Local != nil {
			_, err = p.Local(ctx)
		}
		if err == nil {
			sess.apply(p.Effect)
			return nil
		}
		if !validate {
			return nil
		}
		e := protocol.Refusal(protocol.CodeNoObject, "The requested "+what+" does not exist or not authorized.")
		return &e
	}
	if database == "" {
		return nil
	}
	if problem := use("USE DATABASE "+quoted(database), "database"); problem != nil || schema == "" {
		return problem
	}
	return use("USE SCHEMA "+quoted(database)+"."+quoted(schema), "schema")
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// EndSessions ends every session, as an administrator can: what runs in them is
// cancelled, and later requests are refused with 390111.
func (s *Server) EndSessions() {
	s.mu.Lock()
	open := make([]*session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		open = append(open, sess)
	}
	s.mu.Unlock()
	for _, sess := range open {
		s.end(sess)
	}
}
