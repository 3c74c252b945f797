"""Models of Hugging Face for images, sound, series and proteins, and single layers of its models, with random weights."""

from __future__ import annotations

from functools import partial

import torch
import transformers as hf
from huggingface_text import HEADS, INNER, LAYERS, SIZES, TOKENS, WIDTH
from transformers.models.bert.modeling_bert import BertIntermediate, BertLayer
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from zoo_registry import Brought, zoo

model = partial(zoo.model, "huggingface")

VISION = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "image_size": 16,
    "patch_size": 4,
}


def image(side: int = 16) -> torch.Tensor:
    return torch.randn(1, 3, side, side)


@model(fast=True)
def vit() -> Brought:
    return hf.ViTModel(hf.ViTConfig(**VISION)), (image(),)


@model()
def vit_classifier() -> Brought:
    return hf.ViTForImageClassification(hf.ViTConfig(**VISION, num_labels=4)), (), {"pixel_values": image()}


@model()
def deit() -> Brought:
    return hf.DeiTModel(hf.DeiTConfig(**VISION)), (image(),)


@model()
def clip_vision() -> Brought:
    return hf.CLIPVisionModel(hf.CLIPVisionConfig(**VISION)), (image(),)


@model()
def clip_text() -> Brought:
    config = hf.CLIPTextConfig(**SIZES)
    return hf.CLIPTextModel(config), (torch.randint(3, 50, (1, TOKENS)),)


@model()
def swin() -> Brought:
    config = hf.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[2], num_heads=[2], window_size=4)
    return hf.SwinModel(config), (image(),)


@model()
def convnext() -> Brought:
    return hf.ConvNextModel(hf.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)), (image(),)


@model()
def resnet() -> Brought:
    config = hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    return hf.ResNetModel(config), (image(),)


@model()
def mobilenet_v2() -> Brought:
    return hf.MobileNetV2Model(hf.MobileNetV2Config(image_size=32, depth_multiplier=0.1)), (image(32),)


@model()
def segformer() -> Brought:
    config = hf.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 16],
        num_attention_heads=[1, 2],
        patch_sizes=[3, 3],
        strides=[2, 2],
        mlp_ratios=[2, 2],
    )
    return hf.SegformerModel(config), (image(),)


@model()
def wav2vec2() -> Brought:
    config = hf.Wav2Vec2Config(
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        conv_dim=(8, 8),
        conv_stride=(4, 2),
        conv_kernel=(8, 4),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )
    return hf.Wav2Vec2Model(config), (torch.randn(1, 80),)


@model()
def whisper_encoder() -> Brought:
    config = hf.WhisperConfig(
        d_model=WIDTH,
        encoder_layers=1,
        encoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        num_mel_bins=8,
        max_source_positions=8,
        pad_token_id=0,
    )
    return hf.models.whisper.modeling_whisper.WhisperEncoder(config), (torch.randn(1, 8, 16),)


@model()
def patch_tst() -> Brought:
    config = hf.PatchTSTConfig(
        num_input_channels=2,
        context_length=16,
        patch_length=4,
        patch_stride=4,
        d_model=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        ffn_dim=INNER,
    )
    return hf.PatchTSTModel(config), (torch.randn(1, 16, 2),)


@model()
def esm() -> Brought:
    config = hf.EsmConfig(**SIZES, mask_token_id=3, position_embedding_type="rotary")
    return hf.EsmModel(config), (torch.randint(4, 50, (1, TOKENS)),)


@model(fast=True)
def bert_layer() -> Brought:
    return BertLayer(hf.BertConfig(**SIZES, attn_implementation="eager")), (torch.randn(1, TOKENS, WIDTH),)


@model(fast=True)
def bert_intermediate() -> Brought:
    return BertIntermediate(hf.BertConfig(**SIZES)), (torch.randn(1, TOKENS, WIDTH),)


@model(fast=True)
def llama_mlp() -> Brought:
    return LlamaMLP(hf.LlamaConfig(**SIZES)), (torch.randn(1, TOKENS, WIDTH),)


@model()
def llama_norm() -> Brought:
    return LlamaRMSNorm(WIDTH), (torch.randn(1, TOKENS, WIDTH),)
