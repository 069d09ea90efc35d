package s3store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/loadstone-db/loadstone/engine"
)

// status is the HTTP status of a refusal, 0 when there was no answer.
func status(err error) int {
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok && r.Response != nil {
		return r.HTTPStatusCode()
	}
	return 0
}

// refusal is the code of a refusal, "" when there was no answer or it had none.
func refusal(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

func isAbsent(err error) bool {
	code := refusal(err)
	return code == "NoSuchKey" || status(err) == http.StatusNotFound && code != "NoSuchBucket" && code != "NoSuchUpload"
}

// isConflict: the condition of a write did not hold, or another writer is at it.
func isConflict(err error) bool {
	return status(err) == http.StatusPreconditionFailed || refusal(err) == "ConditionalRequestConflict" ||
		refusal(err) == "NoSuchUpload"
}

// unsupported reports whether the server does not know what it was asked.
func unsupported(err error) bool {
	return status(err) == http.StatusNotImplemented || status(err) == http.StatusMethodNotAllowed
}

type cause struct{ sentence, hint string }

var (
	unknownKey = cause{"the access key is not known there",
		"Check AWS_ACCESS_KEY_ID, or the profile, and the endpoint."}
	wrongRegion = cause{"the bucket is in another region", "Name its region: --results s3://…?region=REGION."}
)

// causes are the refusals that people can do something about.
var causes = map[string]cause{
	"NoSuchBucket": {"the bucket does not exist", "Make the bucket, or name another with --results."},
	"NoSuchKey":    {"the object is gone", "Somebody has removed it from the bucket."},
	"AccessDenied": {"these keys may not do that", "They need s3:ListBucket and s3:ListBucketMultipartUploads on the " +
		"bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListMultipartUploadParts " +
		"on its objects."},
	"InvalidAccessKeyId": unknownKey,
	"XAdminUserNotFound": unknownKey,
	"SignatureDoesNotMatch": {"the secret key does not belong to the access key",
		"Check AWS_SECRET_ACCESS_KEY, or the profile."},
	"ExpiredToken":                 {"the credentials have expired", "Renew them, and start again."},
	"InvalidToken":                 {"the session token is not valid", "Check AWS_SESSION_TOKEN, or leave it out."},
	"RequestTimeTooSkewed":         {"the clocks differ by too much", "Set the clock of this machine."},
	"PermanentRedirect":            wrongRegion,
	"IllegalLocationConstraint":    wrongRegion,
	"AuthorizationHeaderMalformed": {"the region is another", "Name the region: --results s3://…?region=REGION."},
	"QuotaExceeded":                {"its quota is used up", "Delete old runs, or raise the quota."},
	"XMinioStorageFull":            {"it is full", "Delete old runs, or give it more room."},
}

const retryHint = "See whether it can be reached from this machine and answers others; what was not stored is kept, " +
	"and goes on when the server is started again."

// explain turns a refusal, or no answer, into the error that a user sees. doing is
// how a sentence begins: "Storing executions-1.parquet".
func (s *Store) explain(err error, doing string) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e
	}
	out := &engine.Error{Code: engine.CodeUnavailable, Hint: retryHint, Cause: err}
	code, message := refusal(err), status(err)
	if code == "" || code == "Forbidden" || code == "NotFound" {
		// An answer to HEAD has no body that says more.
		switch message {
		case http.StatusForbidden, http.StatusUnauthorized:
			code = "AccessDenied"
		case http.StatusMovedPermanently, http.StatusTemporaryRedirect:
			code = "PermanentRedirect"
		case http.StatusNotFound:
			code = "NoSuchKey"
		}
	}
	var sentence string
	switch cause, known := causes[code]; {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", strings.ToLower(doing[:1])+doing[1:], err)
	case known:
		sentence, out.Hint = cause.sentence, cause.hint
	case message == http.StatusServiceUnavailable || message == http.StatusTooManyRequests:
		sentence = fmt.Sprintf("it is overloaded (%d) and stays so", message)
	case message >= http.StatusInternalServerError:
		sentence = fmt.Sprintf("it answers with an error of its own (%d %s)", message, code)
	case message != 0:
		sentence = fmt.Sprintf("it refuses with %d %s", message, code)
	case throttled(err):
		sentence = "it is too slow, or does not answer"
	default:
		sentence = "it does not answer: " + innermost(err)
	}
	out.Message = fmt.Sprintf("%s failed: the results storage %s cannot be used now, %s.", doing, s.address, sentence)
	return out
}

func throttled(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// innermost is the error at the bottom, which says what happened without the path there.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// unreachable reports whether nobody answered, or nobody who could: the next one need not wait as long.
func unreachable(err error) bool {
	message := status(err)
	return !errors.Is(err, context.Canceled) && refusal(err) == "" && message == 0 ||
		message >= http.StatusInternalServerError || message == http.StatusTooManyRequests
}
