package scaling

import (
	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
)

// WithEventID gives an event the id under which it is going to be stored, for the answer to who asked.
func WithEventID(e engine.Event) engine.Event {
	e.EventID = uuid.NewString()
	return e
}
