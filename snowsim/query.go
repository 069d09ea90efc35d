package snowsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
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

// job is one statement, from its request until its result is dropped.
type job struct {
	server    *Server
	session   *session
	requestID string
	queryID   string
	id        [16]byte
	req       queryRequest
	started   time.Time
	// host is the address of this machine by which the client has come.
	host string

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when answer is set

	// Set before done is closed.
	answer      protocol.Envelope
	err         *protocol.Error
	chunks      [][]byte // compressed
	resultBytes int      // bytes of the result
}

// query answers a query request.
func (s *Server) query(w http.ResponseWriter, r *http.Request, sess *session) {
	var req queryRequest
	if err := protocol.Read(r, &req); err != nil {
		protocol.Write(w, protocol.Refusal("390142", "Incoming request does not contain a valid payload: "+err.Error()+"."))
		return
	}
	requestID := r.URL.Query().Get("requestId")
	if requestID == "" {
		requestID = uuid.NewString()
	}
	sess.mu.Lock()
	j := sess.jobs[requestID]
	if j != nil {
		sess.mu.Unlock()
		s.counts.repeated.Add(1)
	} else {
		j = s.newJob(sess, requestID, req)
		if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
			j.host = at.IP.String()
			if at.IP.IsLoopback() {
				j.host = "127.0.0.1"
			}
		}
		sess.jobs[requestID] = j
		sess.mu.Unlock()
		s.counts.queries.Add(1)
		if !s.launch(j) { //nolint:contextcheck // a job outlives the request that began it
			protocol.Write(w, protocol.Refusal(protocol.CodeSessionGone,
				"Session no longer exists.  New login required to access the service."))
			return
		}
	}
	s.answer(w, r, j)
}

func (s *Server) newJob(sess *session, requestID string, req queryRequest) *job {
	j := &job{server: s, session: sess, requestID: requestID, id: s.newQueryID(), req: req, started: time.Now(),
		done: make(chan struct{})}
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

// answer waits for a job as long as an account would, and writes its result or
// the URL at which to ask for it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, j *job) {
	timer := time.NewTimer(s.opts.AnswerWithin)
	defer timer.Stop()
	select {
	case <-j.done:
		if wait(r.Context(), answerDelay(r.Context())) == nil {
			protocol.Write(w, j.answer)
		}
	case <-timer.C:
		e := protocol.Success(map[string]any{"queryId": j.queryID, "getResultUrl": "/queries/" + j.queryID + "/result",
			"queryAbortsAfterSecs": 300, "progressDesc": nil})
		code, message := protocol.CodeInProgress, "Query execution in progress."
		e.Code, e.Message = &code, &message
		protocol.Write(w, e)
	case <-r.Context().Done(): // the client has gone; the job goes on
	}
}

// job finds one by its query id, among all of the user's sessions.
func (s *Server) job(id string, sess *session) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.results[id]; j != nil && j.session.user == sess.user {
		return j
	}
	return nil
}

// result answers GET /queries/{id}/result.
func (s *Server) result(w http.ResponseWriter, r *http.Request, sess *session) {
	j := s.job(r.PathValue("id"), sess)
	if j == nil {
		protocol.Write(w, protocol.Failure(&protocol.Error{Code: "000709", State: "02000",
			Message: "Statement " + r.PathValue("id") + " not found"}, r.PathValue("id")))
		return
	}
	s.answer(w, r, j)
}

// abort answers an abort request, which names the statement by its request id.
func (s *Server) abort(w http.ResponseWriter, r *http.Request, sess *session) {
	var req struct {
		RequestID string `json:"requestId"`
	}
	if err := protocol.Read(r, &req); err != nil {
		protocol.Write(w, protocol.Refusal("390142", "Incoming request does not contain a valid payload."))
		return
	}
	sess.mu.Lock()
	j := sess.jobs[req.RequestID]
	sess.mu.Unlock()
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

// chunk serves one chunk of a result. Its URL is the key, as that of a
// signed address of a cloud's storage: the client has it from the answer.
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
}

// finish sets the answer and forgets older ones.
func (j *job) finish() {
	s, sess := j.server, j.session
	j.cancel(nil)
	var forget []*job
	sess.mu.Lock()
	sess.done = append(sess.done, j)
	sess.doneBytes += j.resultBytes
	for len(sess.done) > maxResults || len(sess.done) > 1 && sess.doneBytes > maxResultBytes {
		oldest := sess.done[0]
		sess.done = sess.done[1:]
		sess.doneBytes -= oldest.resultBytes
		delete(sess.jobs, oldest.requestID)
		forget = append(forget, oldest)
	}
	sess.mu.Unlock()
	s.mu.Lock()
	for _, old := range forget {
		delete(s.results, old.queryID)
	}
	if sess.closed {
		delete(s.results, j.queryID)
	}
	s.mu.Unlock()
	close(j.done)
}
