package objects_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/storage/objects"
	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
)

func TestAFolderConforms(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objects.Store {
		f, err := objects.OpenFolder(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
}
