package storagetest

import "testing"

func testContention(t *testing.T, open Open) {}
func testHistories(t *testing.T, open Open)  {}
func testModel(t *testing.T, open Open)      {}
