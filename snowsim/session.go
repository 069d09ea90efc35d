package snowsim

import (
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

	// Under the server's mu.
	token, master          string
	expires, masterExpires time.Time
	issued                 []string // tokens of before: they too have "expired"
	closed                 bool

	// turn is held by the statement that runs.
	turn sync.Mutex
	// conn is pinned while the session is in a transaction; under turn.
	conn *pgxpool.Conn

	mu                                sync.Mutex
	role, warehouse, database, schema string
	parameters                        map[string]string
	transaction                       bool
	jobs                              map[string]*job // by request id
	done                              []*job          // finished jobs whose results are kept, the oldest first
	doneBytes                         int
}

// What a session keeps of finished statements, so that their results can be asked for again.
const (
	keepJobs  = 16
	keepBytes = 64 << 20
)

// view returns a copy of the session as a translator sees it.
func (one *session) view() *translate.Session {
	one.mu.Lock()
	defer one.mu.Unlock()
	return &translate.Session{ID: one.id, User: one.user, Account: strings.ToUpper(one.server.opts.Account), Role: one.role,
		Warehouse: one.warehouse, Database: one.database,
		Schema: one.schema, Parameters: maps.Clone(one.parameters), Transaction: one.transaction}
}

// apply changes the session as a plan says.
func (one *session) apply(e translate.Effect) {
	one.mu.Lock()
	defer one.mu.Unlock()
	for _, c := range []struct{ at, to *string }{{&one.database, e.Database}, {&one.schema, e.Schema}, {&one.role, e.Role},
		{&one.warehouse, e.Warehouse}} {
		if c.to != nil {
			*c.at = *c.to
		}
	}
	for name, value := range e.Set {
		one.parameters[strings.ToUpper(name)] = value
	}
	for _, name := range e.Unset {
		delete(one.parameters, strings.ToUpper(name))
	}
}

// parameters that a client is told at log-in and after each statement, with
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
	{"CLIENT_TELEMETRY_ENABLED", true}, {"DATE_OUTPUT_FORMAT", "YYYY-MM-DD"}, {"GO_QUERY_RESULT_FORMAT", "json"},
	{"QUERY_CONTEXT_CACHE_SIZE", 5},
	{"SERVICE_NAME", ""}, {"TIMESTAMP_OUTPUT_FORMAT", "YYYY-MM-DD HH24:MI:SS.FF3 TZHTZM"},
	{"TIMESTAMP_TYPE_MAPPING", "TIMESTAMP_NTZ"}, {"TIMEZONE", "America/Los_Angeles"},
}

type parameter struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func (one *session) parameterList() []parameter {
	one.mu.Lock()
	defer one.mu.Unlock()
	out := make([]parameter, 0, len(clientParameters))
	for _, p := range clientParameters {
		v := p.def
		if set, ok := one.parameters[p.name]; ok {
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

// find returns the session of a token, or why there is none.
func (s *Server) find(token string) (*session, *protocol.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.tokens[token]
	if one == nil {
		e := protocol.Refusal(protocol.CodeSessionGone,
			"Session no longer exists.  New login required to access the service.")
		return nil, &e
	}
	if token != one.token || time.Now().After(one.expires) {
		e := protocol.Refusal(protocol.CodeSessionExpired, "Your session has expired. Please login again.")
		return nil, &e
	}
	return one, nil
}

// expire lets the token of a session expire now; the client has to renew it.
func (s *Server) expire(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.expires = time.Time{}
}

// renew gives a session a new token for its master token.
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
	one := s.masters[protocol.TokenOf(r)]
	switch {
	case one == nil:
		s.mu.Unlock()
		protocol.Write(w, protocol.Refusal(protocol.CodeMasterInvalid, "Master token is invalid. Please login again."))
		return
	case time.Now().After(one.masterExpires):
		s.mu.Unlock()
		protocol.Write(w, protocol.Refusal(protocol.CodeMasterExpired,
			"Authentication token has expired.  The user must authenticate again."))
		return
	}
	s.issue(one)
	token, master := one.token, one.master
	s.mu.Unlock()
	s.counts.renewals.Add(1)
	protocol.Write(w, protocol.Success(map[string]any{"sessionToken": token,
		"validityInSecondsST": int64(s.opts.SessionValidity / time.Second),
		"masterToken":         master, "validityInSecondsMT": int64(s.opts.MasterValidity / time.Second),
		"sessionId": one.id}))
}

// closeSession answers POST /session?delete=true.
func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) {
	one, problem := s.find(protocol.TokenOf(r))
	if problem != nil && *problem.Code == protocol.CodeSessionExpired {
		// The client will not come back to end it with another token.
		s.mu.Lock()
		one = s.tokens[protocol.TokenOf(r)]
		s.mu.Unlock()
	}
	if one != nil && r.URL.Query().Get("delete") == "true" {
		s.end(one)
	}
	if problem != nil {
		protocol.Write(w, *problem)
		return
	}
	protocol.Write(w, protocol.Success(nil))
}

// end cancels what a session still does and forgets it. Ending twice is safe.
func (s *Server) end(one *session) {
	s.mu.Lock()
	delete(s.sessions, one.id)
	delete(s.masters, one.master)
	delete(s.tokens, one.token)
	for _, token := range one.issued {
		delete(s.tokens, token)
	}
	one.closed = true
	s.mu.Unlock()
	one.mu.Lock()
	jobs := make([]*job, 0, len(one.jobs))
	for _, j := range one.jobs {
		jobs = append(jobs, j)
	}
	one.mu.Unlock()
	for _, j := range jobs {
		j.cancel(errCancelled)
	}
	s.mu.Lock()
	for _, j := range jobs {
		delete(s.results, j.queryID)
	}
	s.mu.Unlock()
	one.turn.Lock()
	defer one.turn.Unlock()
	one.release(true)
}

// release gives a pinned connection back, rolled back or not. The caller holds turn.
func (one *session) release(rollback bool) {
	one.mu.Lock()
	one.transaction = false
	one.mu.Unlock()
	if one.conn == nil {
		return
	}
	conn := one.conn
	one.conn = nil
	if rollback {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(one.server.ctx), 5*time.Second)
		defer cancel()
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			_ = conn.Conn().Close(ctx) // the pool makes another
		}
	}
	conn.Release()
}

// sweep ends the sessions whose clients have gone: whose master token has expired.
func (s *Server) sweep() {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			var gone []*session
			s.mu.Lock()
			for _, one := range s.sessions {
				if now.After(one.masterExpires) {
					gone = append(gone, one)
				}
			}
			s.mu.Unlock()
			for _, one := range gone {
				s.end(one)
			}
		}
	}
}

// enter sets the database and the schema of a new session.
func (s *Server) enter(ctx context.Context, one *session, database, schema string, validate bool) *protocol.Envelope {
	use := func(sql, what string) *protocol.Envelope {
		p, err := s.translator.Plan(ctx, one.view(), sql, nil)
		if err == nil && p.Local != nil {
			_, err = p.Local(ctx)
		}
		if err == nil {
			one.apply(p.Effect)
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
// cancelled, and whoever uses one again is told that it is gone.
func (s *Server) EndSessions() {
	s.mu.Lock()
	open := make([]*session, 0, len(s.sessions))
	for _, one := range s.sessions {
		open = append(open, one)
	}
	s.mu.Unlock()
	for _, one := range open {
		s.end(one)
	}
}
