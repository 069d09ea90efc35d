package protocol

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxRequest bounds a request's body, compressed or not: array binds are long.
const maxRequest = 256 << 20

// Envelope is the form of every answer.
type Envelope struct {
	Data    any     `json:"data"`
	Message *string `json:"message"`
	Code    *string `json:"code"`
	Success bool    `json:"success"`
	Headers any     `json:"headers,omitempty"`
}

// Success is the envelope of an answer.
func Success(data any) Envelope { return Envelope{Data: data, Success: true} }

// Refusal is the envelope of what is refused, with the code by which drivers know why.
func Refusal(code, message string) Envelope {
	return Envelope{Code: &code, Message: &message}
}

// Write writes an answer.
func Write(w http.ResponseWriter, e Envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-store")
	_ = json.NewEncoder(w).Encode(e) // a client that has gone needs no answer
}

// Read decodes a JSON body, gzip or not.
func Read(r *http.Request, into any) error {
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

// TokenOf returns the token of the header `Authorization: Snowflake Token="…"`.
func TokenOf(r *http.Request) string {
	_, token, found := strings.Cut(r.Header.Get("Authorization"), `Snowflake Token="`)
	if !found {
		return ""
	}
	return strings.TrimSuffix(token, `"`)
}

// Failure is the answer for a statement that failed.
func Failure(err *Error, queryID string) Envelope {
	e := Refusal(err.Code, err.Message)
	e.Data = map[string]any{"internalError": false, "errorCode": err.Code, "sqlState": err.State, "queryId": queryID,
		"age": 0, "line": -1, "pos": -1, "type": "COMPILATION"}
	return e
}

// Codes of Snowflake's front door.
const (
	CodeWrongPassword  = "390100"
	CodeSessionGone    = "390111"
	CodeSessionExpired = "390112"
	CodeMasterExpired  = "390114"
	CodeMasterInvalid  = "390115"
	CodeInvalidJWT     = "390144"
	CodeNoRole         = "390189"
	CodeNoObject       = "390201"
	CodeInvalidOAuth   = "390303"
	CodeExpiredOAuth   = "390318"
	CodeInvalidToken   = "394400"
	CodeMFARequired    = "394508"

	CodeInProgress      = "333333"
	CodeInProgressAsync = "333334"
	CodeCancelled       = "000604"
	CodeNotExecuting    = "000605"
	CodeNoWarehouse     = "000606"
	CodeQueueTimeout    = "000628"
	CodeTimeout         = "000630"
	CodeNotAttached     = "391490" // invented
)
