// Command podsecurity judges the pods of manifests by the evaluator that Kubernetes itself uses for namespaces with the
// Pod Security Standard `restricted`. It reads manifests from stdin, prints the number of pods, and fails with the reasons.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pods := 0
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		name, meta, spec, err := pod(document)
		if err != nil {
			return err
		}
		if spec == nil {
			continue
		}
		pods++
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, meta, spec))
		if !result.Allowed {
			return fmt.Errorf("%s: %s: %s", name, result.ForbiddenReason(), result.ForbiddenDetail())
		}
	}
	fmt.Println(pods)
	return nil
}

// pod returns the pod that a document has or makes; a document without one has no spec. Unknown fields are refused.
func pod(document []byte) (string, *metav1.ObjectMeta, *corev1.PodSpec, error) {
	var kind metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return "", nil, nil, err
	}
	name := fmt.Sprintf("%s `%s`", kind.Kind, kind.Name)
	var template *corev1.PodTemplateSpec
	var err error
	switch kind.Kind {
	case "Deployment":
		var it appsv1.Deployment
		err, template = yaml.UnmarshalStrict(document, &it), &it.Spec.Template
	case "StatefulSet":
		var it appsv1.StatefulSet
		err, template = yaml.UnmarshalStrict(document, &it), &it.Spec.Template
	case "Job":
		var it batchv1.Job
		err, template = yaml.UnmarshalStrict(document, &it), &it.Spec.Template
	case "Pod":
		var it corev1.Pod
		if err := yaml.UnmarshalStrict(document, &it); err != nil {
			return name, nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		return name, &it.ObjectMeta, &it.Spec, nil
	default:
		return name, nil, nil, nil
	}
	if err != nil {
		return name, nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return name, &template.ObjectMeta, &template.Spec, nil
}
