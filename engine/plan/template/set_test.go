package template

// replaced is the document with one field replaced.
func replaced(source []byte, path, value string) ([]byte, error) {
	return SetAll(source, []Assignment{{path, value}})
}
