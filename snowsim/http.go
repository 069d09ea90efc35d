package snowsim

import (
	"io"
	"net/http"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session/v1/login-request", s.login)
	mux.HandleFunc("POST /session/token-request", s.renew)
	mux.HandleFunc("POST /session/heartbeat",
		s.inSession(func(w http.ResponseWriter, _ *http.Request, _ *session) { protocol.Write(w, protocol.Success(nil)) }))
	mux.HandleFunc("POST /session", s.closeSession)
	mux.HandleFunc("POST /queries/v1/query-request", s.inSession(s.query))
	mux.HandleFunc("POST /queries/v1/abort-request", s.inSession(s.abort))
	mux.HandleFunc("GET /queries/{id}/result", s.inSession(s.result))
	mux.HandleFunc("GET /chunks/{id}/{n}", s.chunk)
	mux.HandleFunc("POST /telemetry/send", func(w http.ResponseWriter, _ *http.Request) {
		s.counts.telemetry.Add(1)
		protocol.Write(w, protocol.Success("Log Received"))
	})
	mux.HandleFunc("GET /snowsim/stats",
		func(w http.ResponseWriter, _ *http.Request) { protocol.Write(w, protocol.Success(s.Stats())) })
	mux.HandleFunc("POST "+oauthTokenPath, s.giveToken)
	mux.HandleFunc("GET /snowsim/ca.pem", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = io.WriteString(w, s.stages.authority) // a client that has gone needs no answer
	})
	s.faults.routes(mux)
	return s.faults.inject(faultyPlace{kind: requestKind,
		refuse: func(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) },
		expire: func(r *http.Request) {
			if sess, problem := s.find(protocol.TokenOf(r)); problem == nil {
				s.expire(sess)
			}
		},
		end: func(r *http.Request) {
			if sess, problem := s.find(protocol.TokenOf(r)); problem == nil {
				s.end(sess)
			}
		}}, mux)
}

// faultyStages lets faults happen to what clients ask of the storage of stages.
func (s *Server) faultyStages(next http.Handler) http.Handler {
	return s.faults.inject(faultyPlace{kind: func(string) string { return "stage" },
		refuse: func(w http.ResponseWriter, status int) { s.stages.refuse(w, s.stages.fault(status)) },
		expire: func(*http.Request) { s.stages.expire() }, end: func(*http.Request) { s.stages.expire() }}, next)
}

// inSession finds the session of a request and refuses those without one.
func (s *Server) inSession(next func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sess, problem := s.find(protocol.TokenOf(r))
		if problem != nil {
			protocol.Write(w, *problem)
			return
		}
		next(w, r, sess)
	}
}
