package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const steadyPause = 20 * time.Millisecond

// steady sends one message after the other, and consumes them, until its input ends; all settings are the client's own.
// It tells when each send began and ended, and when each message came. Arguments: name server, topic, group.
func steady(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("steady: name server, topic, group")
	}
	servers, topic, group := []string{arguments[0]}, arguments[1], arguments[2]
	reader, err := rocketmq.NewPushConsumer(consumer.WithNameServer(servers), consumer.WithGroupName(group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	err = reader.Subscribe(topic, consumer.MessageSelector{}, func(
		_ context.Context, messages ...*primitive.MessageExt,
	) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			say("GOT", time.Now().UnixMilli(), string(message.Body))
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	sender, err := rocketmq.NewProducer(
		producer.WithNameServer(servers), producer.WithGroupName(group+"-producer"), producer.WithInstanceName("sender"))
	if err != nil {
		return err
	}
	if err := sender.Start(); err != nil {
		return err
	}
	if err := reader.Start(); err != nil {
		return err
	}
	say("STARTED")
	var isEnding atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for number := 0; !isEnding.Load(); number++ {
			began := time.Now().UnixMilli()
			broker := ""
			message := primitive.NewMessage(topic, []byte(strconv.Itoa(number)))
			result, err := sender.SendSync(context.Background(), message)
			if err == nil && result.Status == primitive.SendOK {
				broker = result.MessageQueue.BrokerName
			}
			say("SENT", began, time.Now().UnixMilli(), number, broker)
			time.Sleep(steadyPause)
		}
	}()
	waitForEnd()
	isEnding.Store(true)
	<-ended
	return nil
}
