package httpx

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// MaxUpload is the size limit of an uploaded plugin, in bytes.
	MaxUpload = 8 << 20
	// MediaType is that of an uploaded plugin.
	MediaType = "application/wasm"
	// maxEnvelope is what a form may add around the file.
	maxEnvelope = 64 << 10
)

type bodyKey struct{}

// SetBody hands the body of an upload to Receive.
func SetBody(c *fiber.Ctx, body io.Reader) { c.Locals(bodyKey{}, body) }

// Receive reads an uploaded file off the wire, up to the limit and within a time.
func Receive(c *fiber.Ctx, within time.Duration) ([]byte, error) {
	header := &c.Request().Header
	if len(header.ContentEncoding()) > 0 {
		return nil, New(http.StatusUnsupportedMediaType, CodeMediaType,
			"The body is compressed, which this address does not take.", "Send it without Content-Encoding.")
	}
	media, params, err := mime.ParseMediaType(string(header.ContentType()))
	if err != nil || media != MediaType && media != fiber.MIMEOctetStream && media != fiber.MIMEMultipartForm {
		return nil, New(http.StatusUnsupportedMediaType, CodeMediaType,
			"The body is not of a type this address takes.",
			"Send the file with Content-Type: application/wasm, or in the field `file` of a multipart/form-data form.")
	}
	if header.ContentLength() > MaxUpload+maxEnvelope {
		return nil, uploadTooLarge()
	}
	if err := c.Context().Conn().SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, fmt.Errorf("reading an upload: %w", err)
	}
	body, ok := c.Locals(bodyKey{}).(io.Reader)
	if !ok {
		return nil, noFile()
	}
	limited := &io.LimitedReader{R: body, N: MaxUpload + maxEnvelope + 1}
	var wasm []byte
	if media == fiber.MIMEMultipartForm {
		wasm, err = formFile(multipart.NewReader(limited, params["boundary"]))
	} else {
		wasm, err = io.ReadAll(io.LimitReader(limited, MaxUpload+1))
		// The end of the connection looks like the end of the body.
		if n := header.ContentLength(); err == nil && n > len(wasm) {
			err = io.ErrUnexpectedEOF
		}
	}
	var p *Problem
	var waited net.Error
	switch {
	case len(wasm) > MaxUpload, limited.N <= 0:
		return nil, uploadTooLarge()
	case errors.As(err, &p):
		return nil, p
	case errors.As(err, &waited) && waited.Timeout():
		return nil, New(http.StatusRequestTimeout, CodeTimeout, "The file did not arrive in time.",
			"Send the whole file without pausing; Content-Length has to be its exact size.")
	case err != nil:
		return nil, New(http.StatusBadRequest, CodeMalformed,
			"The upload broke off before its end, or is not the form that its header announces.",
			"Send the whole file; Content-Length has to be its exact size.")
	case len(wasm) == 0:
		return nil, noFile()
	}
	return wasm, nil
}

// formFile returns the field `file` of a form, and nothing else may be in it.
func formFile(form *multipart.Reader) ([]byte, error) {
	var wasm []byte
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return wasm, nil
		}
		if err != nil {
			return nil, err
		}
		if part.FormName() != "file" || wasm != nil {
			return nil, Field("file", "is the only field of an upload, once", "send one file at a time")
		}
		if wasm, err = io.ReadAll(io.LimitReader(part, MaxUpload+1)); err != nil || len(wasm) > MaxUpload {
			return wasm, err
		}
	}
}

func uploadTooLarge() error {
	return &engine.Error{Code: engine.CodeTooLarge, Message: fmt.Sprintf("The file has more than %d MB.", MaxUpload>>20),
		Hint: "Build it for size: strip the debug information (Go: -ldflags='-s -w', clang: -Wl,--strip-all)."}
}

func noFile() error {
	return New(http.StatusBadRequest, CodeMalformed, "The request has no file.",
		"Send the .wasm file as the body, or in the field `file` of a form.")
}
