package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// The file ends with: where the payload begins and how long it is (two little-endian uint64), its SHA-256, the mark.
const (
	mark        = "GANTRY01"
	trailerSize = 8 + 8 + 32 + len(mark)
	keyLength   = 32
)

type payload struct {
	file   *os.File
	offset int64
	size   int64
	sha256 []byte
}

func openPayload(path string) (*payload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	trailer := make([]byte, trailerSize)
	begins := about.Size() - int64(trailerSize)
	if _, err := file.ReadAt(trailer, begins); err != nil || !bytes.HasSuffix(trailer, []byte(mark)) {
		return nil, errors.New("this file is not whole: its end is missing")
	}
	found := &payload{
		file:   file,
		offset: int64(binary.LittleEndian.Uint64(trailer)),
		size:   int64(binary.LittleEndian.Uint64(trailer[8:])),
		sha256: trailer[16:48],
	}
	if found.offset < 0 || found.size < 0 || found.offset+found.size != begins {
		return nil, fmt.Errorf("this file is not whole: %d bytes at %d do not end at %d", found.size, found.offset, begins)
	}
	return found, nil
}

// key names the tree: another content is another folder.
func (p *payload) key() string { return hex.EncodeToString(p.sha256[:keyLength/2]) }

func (p *payload) reader() io.Reader { return io.NewSectionReader(p.file, p.offset, p.size) }

func (p *payload) close() { p.file.Close() }
