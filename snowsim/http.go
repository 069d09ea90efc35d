package snowsim

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// maxRequest bounds a request's body, compressed or not: array binds are long.
const maxRequest = 256 << 20

// Codes of Snowflake's front door.
const (
	codeWrongPassword  = "390100"
	codeSessionGone    = "390111"
	codeSessionExpired = "390112"
	codeMasterExpired  = "390114"
	codeMasterInvalid  = "390115"
	codeInvalidJWT     = "390144"
	codeNoRole         = "390189"
	codeNoObject       = "390201"
	codeInvalidOAuth   = "390303"
	codeExpiredOAuth   = "390318"
	codeInvalidToken   = "394400"
	codeMFARequired    = "394508"

	codeInProgress      = "333333"
	codeInProgressAsync = "333334"
	codeCancelled       = "000604"
	codeNotExecuting    = "000605"
	codeNoWarehouse     = "000606"
	codeQueueTimeout    = "000628"
	codeTimeout         = "000630"
	codeNotAttached     = "391490" // invented
)

// envelope is the form of every answer.
type envelope struct {
	Data    any     `json:"data"`
	Message *string `json:"message"`
	Code    *string `json:"code"`
	Success bool    `json:"success"`
	Headers any     `json:"headers,omitempty"`
}

func success(data any) envelope { return envelope{Data: data, Success: true} }

func refusal(code, message string) envelope {
	return envelope{Code: &code, Message: &message}
}

func write(w http.ResponseWriter, e envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-store")
	_ = json.NewEncoder(w).Encode(e) // a client that has gone needs no answer
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session/v1/login-request", s.login)
	mux.HandleFunc("POST /session/token-request", s.renew)
	mux.HandleFunc("POST /session/heartbeat",
		s.inSession(func(w http.ResponseWriter, _ *http.Request, _ *session) { write(w, success(nil)) }))
	mux.HandleFunc("POST /session", s.closeSession)
	mux.HandleFunc("POST /queries/v1/query-request", s.inSession(s.query))
	mux.HandleFunc("POST /queries/v1/abort-request", s.inSession(s.abort))
	mux.HandleFunc("GET /queries/{id}/result", s.inSession(s.result))
	mux.HandleFunc("GET /monitoring/queries/{id}", s.inSession(s.monitor))
	mux.HandleFunc("GET /chunks/{id}/{n}", s.chunk)
	mux.HandleFunc("POST /telemetry/send", func(w http.ResponseWriter, _ *http.Request) {
		s.counts.telemetry.Add(1)
		write(w, success("Log Received"))
	})
	mux.HandleFunc("GET /snowsim/stats", func(w http.ResponseWriter, _ *http.Request) { write(w, success(s.Stats())) })
	s.faults.routes(mux)
	return s.faults.inject(s, mux)
}

// read decodes a JSON body, gzip or not.
func read(r *http.Request, into any) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return errors.New("the body is not gzip")
		}
		body = unzipped
	}
	text, err := io.ReadAll(io.LimitReader(body, maxRequest+1))
	if err != nil {
		return errors.New("the body broke off")
	}
	if len(text) > maxRequest {
		return errors.New("the body is too long")
	}
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("the body is not the JSON that is expected here")
	}
	return nil
}

// tokenOf returns the token of the header `Authorization: Snowflake Token="…"`.
func tokenOf(r *http.Request) string {
	_, token, found := strings.Cut(r.Header.Get("Authorization"), `Snowflake Token="`)
	if !found {
		return ""
	}
	return strings.TrimSuffix(token, `"`)
}

// inSession finds the session of a request and refuses those without one.
func (s *Server) inSession(next func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		one, problem := s.find(tokenOf(r))
		if problem != nil {
			write(w, *problem)
			return
		}
		next(w, r, one)
	}
}

// failure is the answer for a statement that failed.
func failure(err *plan.Error, queryID string) envelope {
	e := refusal(err.Code, err.Message)
	e.Data = map[string]any{"internalError": false, "errorCode": err.Code, "sqlState": err.State, "queryId": queryID,
		"age": 0, "line": -1, "pos": -1, "type": "COMPILATION"}
	return e
}
