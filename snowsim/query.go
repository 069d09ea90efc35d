package snowsim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

var errCancelled = errors.New("cancelled")

type queryRequest struct {
	SQL          string                      `json:"sqlText"`
	Async        bool                        `json:"asyncExec"`
	Sequence     uint64                      `json:"sequenceId"`
	Internal     bool                        `json:"isInternal"`
	DescribeOnly bool                        `json:"describeOnly"`
	Parameters   map[string]any              `json:"parameters"`
	Bindings     map[string]protocol.Binding `json:"bindings"`
	BindStage    string                      `json:"bindStage"`
}

// job is one statement from its request to the time that its result is forgotten.
type job struct {
	server    *Server
	session   *session
	requestID string
	queryID   string
	id        [16]byte
	req       queryRequest
	started   time.Time
	// children are the statements of a request with several.
	children []*job

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when answer is set

	// phase is what monitoring tells while the job runs.
	statusMu sync.Mutex
	phase    string
	admitted bool // it has asked a warehouse for room

	// Set before done is closed.
	answer    protocol.Envelope
	err       *protocol.Error
	kind      protocol.StatementType
	rows      int64
	chunks    [][]byte // compressed
	kept      int      // bytes that the result takes
	ended     time.Time
	bytesSent int64
}

func (j *job) tell(status string) {
	j.statusMu.Lock()
	defer j.statusMu.Unlock()
	j.phase = status
}

// query answers a query request.
func (s *Server) query(w http.ResponseWriter, r *http.Request, one *session) {
	var req queryRequest
	if err := protocol.Read(r, &req); err != nil {
		protocol.Write(w, protocol.Refusal("390142", "Incoming request does not contain a valid payload: "+err.Error()+"."))
		return
	}
	requestID := r.URL.Query().Get("requestId")
	if requestID == "" {
		requestID = uuid.NewString()
	}
	one.mu.Lock()
	j := one.jobs[requestID]
	if j != nil {
		one.mu.Unlock()
		s.counts.repeated.Add(1)
	} else {
		j = s.newJob(one, requestID, req)
		one.jobs[requestID] = j
		one.mu.Unlock()
		s.counts.queries.Add(1)
		if !s.launch(j) {
			protocol.Write(w, protocol.Refusal(protocol.CodeSessionGone,
				"Session no longer exists.  New login required to access the service."))
			return
		}
	}
	within, code := s.opts.AnswerWithin, protocol.CodeInProgress
	if req.Async {
		// A client that asked for it is answered at once.
		within, code = 0, protocol.CodeInProgressAsync
	}
	s.answer(w, r, j, within, code)
}

func (s *Server) newJob(one *session, requestID string, req queryRequest) *job {
	j := &job{server: s, session: one, requestID: requestID, id: s.newQueryID(), req: req, started: time.Now(),
		done: make(chan struct{}), phase: "RUNNING"}
	j.queryID = idText(j.id)
	j.ctx, j.cancel = context.WithCancelCause(s.ctx)
	return j
}

// launch starts a job, unless the session or the server has ended.
func (s *Server) launch(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.session.closed || s.ctx.Err() != nil {
		return false
	}
	s.results[j.queryID] = j
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		j.run()
	}()
	return true
}

// answer waits for a job as long as Snowflake would, and writes its result or
// where to ask for it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, j *job, within time.Duration, code string) {
	if within > 0 {
		timer := time.NewTimer(within)
		defer timer.Stop()
		select {
		case <-j.done:
		case <-timer.C:
		case <-r.Context().Done():
			return // the client has gone; the job goes on
		}
	}
	select {
	case <-j.done:
		if wait(r.Context(), slowness(r.Context())) == nil {
			protocol.Write(w, j.answer)
		}
	default:
		e := protocol.Success(map[string]any{"queryId": j.queryID, "getResultUrl": "/queries/" + j.queryID + "/result",
			"queryAbortsAfterSecs": 300, "progressDesc": nil})
		message := "Query execution in progress."
		e.Code, e.Message = &code, &message
		if code == protocol.CodeInProgressAsync {
			message = "Asynchronous execution in progress. Use provided query id to perform query monitoring and management."
		}
		protocol.Write(w, e)
	}
}

// job finds one by its query id, among all of the user's sessions.
func (s *Server) job(id string, one *session) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.results[id]; j != nil && j.session.user == one.user {
		return j
	}
	return nil
}

// result answers GET /queries/{id}/result.
func (s *Server) result(w http.ResponseWriter, r *http.Request, one *session) {
	j := s.job(r.PathValue("id"), one)
	if j == nil {
		protocol.Write(w, protocol.Failure(&protocol.Error{Code: "000709", State: "02000",
			Message: "Statement " + r.PathValue("id") + " not found"}, r.PathValue("id")))
		return
	}
	code := protocol.CodeInProgress
	if j.req.Async {
		code = protocol.CodeInProgressAsync
	}
	s.answer(w, r, j, s.opts.AnswerWithin, code)
}

// abort answers an abort request, which names the statement by its request id or its text.
func (s *Server) abort(w http.ResponseWriter, r *http.Request, one *session) {
	var req struct {
		RequestID string `json:"requestId"`
		SQL       string `json:"sqlText"`
	}
	if err := protocol.Read(r, &req); err != nil {
		protocol.Write(w, protocol.Refusal("390142", "Incoming request does not contain a valid payload."))
		return
	}
	one.mu.Lock()
	j := one.jobs[req.RequestID]
	if j == nil && req.RequestID == "" {
		for _, other := range one.jobs {
			if other.req.SQL == req.SQL {
				j = other
			}
		}
	}
	one.mu.Unlock()
	if j != nil {
		select {
		case <-j.done:
			j = nil
		default:
		}
	}
	if j == nil {
		protocol.Write(w, protocol.Refusal(protocol.CodeNotExecuting, "Identified SQL statement is not currently executing."))
		return
	}
	s.counts.aborts.Add(1)
	j.cancel(errCancelled)
	protocol.Write(w, protocol.Success(nil))
}

// Cancel implements plan.Host.
func (s *Server) Cancel(queryID string) bool {
	return s.cancelWhere(func(j *job) bool { return j.queryID == queryID }) > 0
}

// Abort implements plan.Host.
func (s *Server) Abort(warehouse string) int {
	return s.cancelWhere(func(j *job) bool { return j.session.view().Warehouse == warehouse && j.took() })
}

// took reports whether a job's statement takes a warehouse: it waits for it or runs on it.
func (j *job) took() bool {
	j.statusMu.Lock()
	defer j.statusMu.Unlock()
	return j.admitted
}

// cancelWhere ends the statements under way that which says.
func (s *Server) cancelWhere(which func(*job) bool) (n int) {
	s.mu.Lock()
	jobs := make([]*job, 0, len(s.results))
	for _, j := range s.results {
		jobs = append(jobs, j)
	}
	s.mu.Unlock()
	for _, j := range jobs {
		select {
		case <-j.done:
			continue
		default:
		}
		if which(j) {
			j.cancel(errCancelled)
			s.counts.aborts.Add(1)
			n++
		}
	}
	return n
}

// monitor answers GET /monitoring/queries/{id}.
func (s *Server) monitor(w http.ResponseWriter, r *http.Request, one *session) {
	j := s.job(r.PathValue("id"), one)
	if j == nil {
		protocol.Write(w, protocol.Success(map[string]any{"queries": []any{}}))
		return
	}
	q := map[string]any{"id": j.queryID, "sqlText": j.req.SQL, "startTime": j.started.UnixMilli(), "state": "RUNNING",
		"sessionId": j.session.id, "userName": j.session.user}
	select {
	case <-j.done:
		q["endTime"], q["status"] = j.ended.UnixMilli(), "SUCCESS"
		q["stats"] = map[string]any{"producedRows": j.rows, "scanBytes": j.bytesSent}
		if j.err != nil {
			q["status"], q["errorCode"], q["errorMessage"] = "FAILED_WITH_ERROR", j.err.Code, j.err.Message
		}
	default:
		j.statusMu.Lock()
		q["status"] = j.phase
		j.statusMu.Unlock()
	}
	protocol.Write(w, protocol.Success(map[string]any{"queries": []any{q}}))
}

// chunk serves one chunk of a result. Its address is its key, as that of a
// signed address of a cloud's storage: it is known to whoever has the answer.
func (s *Server) chunk(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	j := s.results[r.PathValue("id")]
	s.mu.Unlock()
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || j == nil {
		http.Error(w, "no such chunk", http.StatusNotFound)
		return
	}
	select {
	case <-j.done:
	default:
		http.Error(w, "no such chunk", http.StatusNotFound)
		return
	}
	if n < 0 || n >= len(j.chunks) || r.URL.Query().Get("key") != j.chunkKey() {
		http.Error(w, "no such chunk", http.StatusNotFound)
		return
	}
	s.counts.chunks.Add(1)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(j.chunks[n]) // a client that has gone needs no answer
}

func (j *job) chunkKey() string {
	return fmt.Sprintf("%016x",
		j.server.salt^uint64(j.session.id))
} //nolint:gosec // bits are bits

// finish sets the answer and forgets older ones.
func (j *job) finish() {
	s, one := j.server, j.session
	j.ended = time.Now()
	j.cancel(nil)
	var forget []*job
	one.mu.Lock()
	one.lastQuery = j.queryID
	one.done = append(one.done, j)
	one.doneBytes += j.kept
	for len(one.done) > keepJobs || len(one.done) > 1 && one.doneBytes > keepBytes {
		oldest := one.done[0]
		one.done = one.done[1:]
		one.doneBytes -= oldest.kept
		delete(one.jobs, oldest.requestID)
		forget = append(forget, oldest)
	}
	one.mu.Unlock()
	s.mu.Lock()
	for _, old := range forget {
		delete(s.results, old.queryID)
		for _, child := range old.children {
			delete(s.results, child.queryID)
		}
	}
	if one.closed {
		delete(s.results, j.queryID)
	}
	s.mu.Unlock()
	close(j.done)
}

// statements returns how many statements a request may have: MULTI_STATEMENT_COUNT,
// of the request or of the session; 0 is any number.
func (j *job) statements(one *translate.Session) int {
	if v, ok := j.req.Parameters["MULTI_STATEMENT_COUNT"]; ok {
		if n, err := strconv.Atoi(fmt.Sprint(v)); err == nil {
			return n
		}
	}
	if n, err := strconv.Atoi(strings.TrimSpace(one.Parameters["MULTI_STATEMENT_COUNT"])); err == nil {
		return n
	}
	return 1
}
