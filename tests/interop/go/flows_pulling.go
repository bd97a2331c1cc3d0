package main

import (
	"context"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const eachQueue = 10

// fill sends ten messages to each queue, tags A and B in turn.
func fill(topic string) []*primitive.MessageQueue {
	queues := queuesOf(topic)
	sender := startProducer(topic+"-producer", producer.WithQueueSelector(producer.NewManualQueueSelector()))
	for each := 0; each < eachQueue*len(queues); each++ {
		made := message(topic, []string{"TagA", "TagB"}[each/len(queues)%2], each)
		made.Queue = queues[each%len(queues)]
		send(sender, made)
	}
	shutdown(sender)
	return queues
}

func startPulling(group string, topic string, selector consumer.MessageSelector) rocketmq.PullConsumer {
	pulling := need(rocketmq.NewPullConsumer(consumerOptions(group)...))
	expectNoError(pulling.Subscribe(topic, selector))
	expectNoError(pulling.Start())
	return pulling
}

// pull: from a queue and an offset that the program keeps; offsets told to the broker.
func pull() facts {
	topic := named("pull")
	queues := fill(topic)
	ctx := context.Background()
	pulling := startPulling(topic+"-group", topic, everything)
	choosing := startPulling(topic+"-choosing", topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "TagA"})
	found := 0
	for _, queue := range queues {
		for offset := int64(0); offset < eachQueue; {
			result := need(pulling.PullFrom(ctx, queue, offset, 4))
			expect(result.Status == primitive.PullFound && result.MaxOffset == eachQueue, result)
			found += len(result.GetMessageExts())
			offset = result.NextBeginOffset
		}
		beyond := need(pulling.PullFrom(ctx, queue, 100, 4))
		expect(beyond.Status == primitive.PullOffsetIllegal, "past the end", beyond)
		tagged := need(choosing.PullFrom(ctx, queue, 0, 32))
		expect(len(tagged.GetMessageExts()) == eachQueue/2, tagged)
	}
	expect(found == eachQueue*len(queues), found)
	shutdown(choosing)
	await(func() bool {
		for _, queue := range queues {
			expectNoError(pulling.UpdateOffset(queue, 6))
		}
		expectNoError(pulling.PersistOffset(ctx, topic))
		shutdown(pulling)
		pulling = startPulling(topic+"-group", topic, everything)
		return stands(pulling, queues, 6)
	}, "the offsets")
	shutdown(pulling)
	return facts{"messages": found}
}

// stands tells whether all queues have the offset soon. The client forgets an offset that it was given before it holds
// the queue, which on a busy machine may be later than the program's first pulls: then the offset is told again.
func stands(pulling rocketmq.PullConsumer, queues []*primitive.MessageQueue, offset int64) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		isThere := true
		for _, queue := range queues {
			isThere = isThere && need(pulling.CurrentOffset(queue)) == offset
		}
		if isThere {
			return true
		}
	}
	return false
}

// poll: from the queues that the client holds; what was acknowledged does not come again.
func poll() facts {
	topic := named("poll")
	queues := fill(topic)
	count := eachQueue * len(queues)
	first := startPulling(topic+"-group", topic, everything)
	got := map[int]bool{}
	await(func() bool {
		request, err := first.Poll(context.Background(), time.Second)
		if err == nil {
			for _, message := range request.GetMsgList() {
				expect(!got[number(message)], "came twice:", number(message))
				got[number(message)] = true
			}
			first.ACK(context.Background(), request, consumer.ConsumeSuccess)
		}
		return len(got) == count
	}, "every message")
	expectNoError(first.PersistOffset(context.Background(), topic))
	shutdown(first)
	second := startPulling(topic+"-group", topic, everything)
	request, err := second.Poll(context.Background(), 2*time.Second)
	expect(consumer.IsNoNewMsgError(err), "acknowledged messages came again", request)
	shutdown(second)
	return facts{"messages": count}
}

// administration: a topic is made, seen and deleted; groups are listed. This client signs only once it has listed groups.
func administration() facts {
	topic := named("admin")
	ctx := context.Background()
	administering := need(admin.NewAdmin(admin.WithResolver(resolver()), admin.WithCredentials(setup.administrator)))
	defer administering.Close()
	for _, address := range setup.brokers {
		groups := need(administering.GetAllSubscriptionGroup(ctx, address, 5*time.Second))
		_, isThere := groups.SubscriptionGroupTable["TOOLS_CONSUMER"]
		expect(isThere, groups)
		expectNoError(administering.CreateTopic(ctx, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(address),
			admin.WithReadQueueNums(3), admin.WithWriteQueueNums(3)))
	}
	await(func() bool { return len(queuesOf(topic)) == 3*len(setup.brokers) }, "three queues on each broker")
	expect(isListed(administering, topic), "is not listed")
	for _, address := range setup.brokers {
		expectNoError(administering.DeleteTopic(
			ctx, admin.WithTopicDelete(topic), admin.WithBrokerAddrDelete(address), admin.WithNameSrvAddr(setup.namesrv)))
	}
	await(func() bool { return !isListed(administering, topic) }, "the end of the topic")
	return facts{"queues": 3 * len(setup.brokers)}
}

func isListed(administering admin.Admin, topic string) bool {
	for _, name := range need(administering.FetchAllTopicList(context.Background())).TopicList {
		if name == topic {
			return true
		}
	}
	return false
}
