// A server of S3 that keeps everything in memory: server ADDRESS ACCESS_KEY SECRET
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	keys := map[string]string{os.Args[2]: os.Args[3]}
	store := gofakes3.New(memory{s3mem.New()}, gofakes3.WithV4Auth(keys))
	log.Fatal(http.ListenAndServe(os.Args[1], withLength(store.Server())))
}

// memory lists what comes after a name also where no object has it; s3mem leaves out the next one then.
type memory struct{ *s3mem.Backend }

func (m memory) ListBucket(
	ctx context.Context, bucket string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage,
) (*gofakes3.ObjectList, error) {
	after := page.Marker
	if _, err := m.HeadObject(ctx, bucket, after); after == "" || err == nil {
		return m.Backend.ListBucket(ctx, bucket, prefix, page)
	}
	all, err := m.Backend.ListBucket(ctx, bucket, prefix, gofakes3.ListBucketPage{})
	if err != nil {
		return nil, err
	}
	found := gofakes3.NewObjectList()
	for _, object := range all.Contents {
		if object.Key > after {
			found.Add(object)
		}
	}
	for _, folder := range all.CommonPrefixes {
		if folder.Prefix > after {
			found.AddPrefix(folder.Prefix)
		}
	}
	return found, nil
}

// withLength tells parts by the length of their content, as S3 does. AWS's SDK for C++ sends no other.
func withLength(next http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if length := request.Header.Get("X-Amz-Decoded-Content-Length"); request.ContentLength < 0 && length != "" {
			request.Header.Set("Content-Length", length)
		}
		next.ServeHTTP(answer, request)
	})
}
