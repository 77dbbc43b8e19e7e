"""Reversed roles: a simulated user who speaks as the agent does.

No single word tells the two sides apart, so the acts of the serving side are weighed: an offer of help, work done for
the other, a request for data that the user himself holds, advice, and things of the user that are called "your".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agentv.run.users.speech import (
    compile_pattern,
    content_words,
    is_declined,
    is_question,
    open_requests,
    plain,
    sentences,
    without_quotations,
    word_set,
    words,
)

REVERSED = 2.0
"""Weight of acts from which the roles are reversed."""
_HELP = r"(?:help|assist|support)"
_I = r"(?:i|we)(?: have|'ve| will|'ll| can| could| would|'d| am|'m| are|'re| shall| may| might)?"
_ADVERBS = (
    r"(?: (?:now|just|already|also|then|gladly|happily|immediately|certainly|gone ahead and|go ahead and"
    r"|be able to))*"
)
_SERVE = (
    r"(?:process|issue|initiat|refund|approv|reset|renew|schedul|arrang|reserv|register|draft|submit|creat|set up"
    r"|sign|upgrad"
    r"|activat|extend|pull up|look (?:up|into)|look (?:it|that|this) up|not(?:e|ed) (?:it|that|this)? ?down|format"
    r"|escalat|waiv"
    r"|credit|unlock|adjust|found|locat|looked up|pulled up|forward|replac|reschedul|updat|look(?:ed)? (?:for|at)"
    r"|guid|walk|point|enrol|recommend|offer|troubleshoot|tailor|assign|log|prepar|find|check|book"
    r"|cancel|order|plac|add|connect|transfer|putt?)\w*"
)
_DONE = (
    r"(?:process|cancell?|creat|book|confirm|renew|updat|schedul|submit|submitt|approv|refund|reserv|register"
    r"|activat|extend"
    r"|paus|upgrad|resolv|reset|issu|complet|add|forward|initiat|reschedul|verifi|unlock|record|dispatch"
    r"|not)(?:ed|d)?"
)
_OWNED = (
    r"(?:order|account|customer|booking|member(?:ship)?|policy|reservation|card|reference|contract|personal|contact"
    r"|payment"
    r"|delivery|shipping|billing|full|first|last|client|patient|insurance|student|employee|ticket|tracking|case)"
)
_DATA = (
    r"(?:name|address|e-?mail|phone|number|id|details?|date of birth|birthday|availability|budget|income|postcode"
    r"|zip)"
)
_THEIRS = (
    r"(?:account|order|parcel|package|booking|reservation|refund|claim|application|appointment|warranty|request"
    r"|inquiry"
    r"|enquiry|complaint|feedback|payment|return|case)"
)
"""Things of a user that are never those of an agent."""
_STRONG = (
    rf"how (?:else )?(?:can|may|could|might|shall) (?:i|we) (?:{_HELP}|serve|be of)",
    r"what can (?:i|we) (?:do|help)\b.{0,20}(?:for )?you",
    rf"(?:can|may|could|shall) (?:i|we) {_HELP} you",
    rf"(?:any|some)thing (?:else )?(?:that )?(?:i|we) (?:can|could|may) (?:{_HELP}|do)",
    rf"(?:happy|glad|here|pleased|delighted|able|ready) to {_HELP} (?:you|with (?:that|this|your))",
    rf"{_I}{_ADVERBS}(?: be)?(?: here)?(?: love| like| happy| glad| pleased| delighted)?(?: to)? {_HELP} you",
    rf"let (?:me|us) {_HELP} you|(?:be of|any) (?:further )?(?:assistance|service)\b",
    r"(?:happy|glad) to help[!.]",
    (
        r"(?:(?<!work\s)(?<!worked\s)(?<!working\s)(?<!job\s)as|i am|i'm|being)(?: just| only)* (?:an?|your"
        r"|the) (?:\w+ )?(?:ai\b|virtual assistant|digital assistant"
        r"|ai assistant|language model|chat ?bot|bot\b|automated|(?:customer )?(?:service|support|care)"
        r" (?:agent|assistant|represent\w+|team))"
    ),
    r"as (?:your|the) (?:\w+ )?assistant\b",
    (
        r"(?:thanks|thank you)(?: so much| very much)? for (?:contacting|calling|choosing|reaching out"
        r"|getting in touch"
        r"|bringing this|being a|your (?:interest|inquiry|enquiry|request|order|purchase|loyalty|booking|business"
        r"|query"
        r"|application|submission))"
    ),
    rf"your [\w' -]{{3,40}} (?:has|have) (?:now |just |already |successfully )*been (?:successfully )?{_DONE}",
    (
        r"your (?!website|site|page|app|system|shop|store|colleague|team|company|service|support|link|advice)"
        r"[\w' -]{3,40} (?:has|have) (?:now |just |already |successfully )*been \w{3,}(?:ed|sent|paid|found|made"
        r"|put)\b"
    ),
    rf"{_I}{_ADVERBS} (?:{_SERVE}|made a note)\b.{{0,60}}\byour (?:{_THEIRS}|file|record|ticket)\b",
    (
        r"(?:i|we)(?:'ll| will|'ve| have| can|'m| am)(?: now| just| also| gladly)* (?:arrang|issu|process|send"
        r"|initiat"
        r"|offer|creat|schedul|provid|prepar)\w* (?:an?|the|another) (?:\w+ )?(?:replacement|refund|label|voucher"
        r"|discount|credit|technician|call-?back)"
    ),
    (
        rf"your {_THEIRS} (?:was|is|were|are|will|can|has|have|should)(?: be| been| still| now| not)* (?!late|missing"
        rf"|wrong|down|broken|the|too|so|a\b)\w+"
    ),
    (
        r"verify (?:you|who you are)\b|(?:what|which)(?:'s| is) your (?:postcode|zip|date of birth|birth\w*|surname"
        r"|(?:last|first|full) name|budget)"
    ),
    r"have you (?:already |ever )?tried (?:\w+ing|to \w+)\b(?! me| us)",
    r"ihre[rnms]? (?:bestell|kunden|auftrags|rechnungs|konto|vertrags|buchungs|versicherungs|telefon|sendungs)\w*",
    r"(?:nennen|geben|teilen|senden|schicken|bestätigen|verraten) sie (?:mir|uns) (?:\w+ )?(?:ihren?|ihr)\b",
    (
        r"(?:ich|wir) (?:\w+ ){0,6}für sie (?:an|ein|um|vor|aus|nach|ab|zu\w*|\w+en|\w+ieren)\b|für sie (?:veranlasst"
        r"|erledigt|gebucht|storniert|angelegt)"
    ),
    (
        r"(?:votre|vos) (?:numéro de (?:commande|client|dossier|téléphone)|commande|compte|réservation|colis"
        r"|demande|dossier)"
        r"|je vais (?:\w+ )?(?:vérifier|annuler|traiter|procéder) votre|je (?:reste|suis) à votre (?:disposition"
        r"|écoute)"
    ),
    (
        r"su (?:número de (?:pedido|cliente|cuenta|reserva)|pedido|reserva|solicitud|reembolso)|(?:il"
        r"|la) su[oa] (?:ordine"
        r"|numero (?:cliente|d'ordine)|prenotazione|richiesta|pacco|rimborso)|(?:o )?seu (?:pedido"
        r"|número de (?:pedido|cliente))"
        r"|uw (?:bestel|klant)\w*"
    ),
    rf"your [\w' -]{{3,40}} (?:is|are) (?:now |all |successfully )+{_DONE}",
    rf"{_I}{_ADVERBS} {_SERVE}\b.{{0,60}}\bfor you\b",
    (
        rf"{_I}{_ADVERBS} (?:process|issu|initiat|approv|renew|schedul|arrang|register|submitt?|updat|activat"
        rf"|extend|upgrad"
        r"|unlock|escalat|review|verif)\w* (?:your|you)\b"
    ),
    (
        rf"(?:could|can|may|would|will) (?:you|i)(?: please| kindly)* (?:provide|share|confirm|give|have|tell|get"
        rf"|take"
        rf"|verify)"
        rf"(?: me| us)?(?: with)? your {_OWNED}"
    ),
    rf"(?:what|which)(?:'s| is| are)? your {_OWNED}",
    rf"(?:i|we)(?:'ll| will|'d| would)?(?: also| still| just| only| first)* (?:need|require) your {_OWNED}",
    (
        r"(?:sorry|apologi[sz]e|apologies)(?: for| about)? (?:any|the|this|your) (?:inconvenience|frustration"
        r"|trouble caused)"
    ),
    r"(?:i|we)(?: fully| completely| do| totally)* understand (?:your|how frustrating)",
    (
        r"we (?:\w+ )?(?:apologi[sz]e|look forward to (?:welcoming|seeing|serving|having|hearing from)|kindly ask"
        r"|value your)"
    ),
    (
        r"(?:sad|sorry) to see you (?:go|leave)|you qualify for|you(?:'re| are) (?:eligible|entitled)"
        r"|valued (?:customer|member)"
    ),
    r"as a (?:loyal|valued) |(?:gesture of )goodwill|on your behalf|i'll be (?:your|assisting)",
    r"(?:i|we)(?:'d| would)?(?: strongly| highly)? (?:recommend|suggest|advise)(?: that)? (?:you|\w+ing your)\b",
    (
        r"(?:i|we) can offer you|(?:may|can|could) (?:i|we) offer you|would you like (?:me|us) to (?!bring|come|send"
        r"|pay|call)"
    ),
    r"(?:one of )?our (?:most popular|best ?sell\w+)|(?:our|the) (?:support |service )?team will\b",
    (
        r"let (?:me|us) (?:just |quickly )?(?:look (?:into|up)|check|pull up|process|see what i can do|find|verify"
        r"|transfer)"
        r"\b.{0,50}\b(?:for you|your)\b"
    ),
    (
        r"let me know if you(?:'d| would)? (?:like me to|have any"
        r"|need any(?:thing)? (?:other|else|more|further)"
        r"|need (?:(?:any|further|more) )?(?:help|assist|info|support)|like (?:help"
        r"|more))(?!.*from me)"
    ),
    r"(?:feel free to|don't hesitate to|do not hesitate to) (?:ask|reach out|contact|get in touch|call|write|let)",
    r"(?:do|did) you have (?:any )?(?:other|more|further|additional) (?:question|concern|request)s?",
    r"if you have (?:any )?(?:other|more|further|additional)? ?(?:questions|concerns)",
    r"is there anything else (?:about .{1,40} )?(?:i|you(?:'d| would)? (?:like|want)|you need (?:help|assist))",
    r"anything else you(?:'d| would) like (?:me|us|to know)",
    (
        rf"{_I}{_ADVERBS} (?:switched|signed|put|moved|added|booked|registered|transferred|upgraded|enrolled"
        rf"|subscribed) you\b"
    ),
    r"(?:verify|confirm|check|validate) your (?:identity|details|account|data|information|eligibility)|maiden name",
    r"(?:thanks|thank you) for (?:letting us know|providing|confirming|sharing your|waiting while|holding)",
    (
        r"(?:please )?(?:contact|call|visit|reach|write to|ask) (?:us|our)\b|enjoy your (?:visit|stay|trip|meal"
        r"|flight"
        r"|purchase|order)"
    ),
    r"let's (?:troubleshoot|get (?:this|that|you) (?:sorted|started|set up)|take a (?:closer )?look at your)",
    r"(?:wie|womit|was) (?:kann|darf|können|dürfen) (?:ich|wir) (?:ihnen|dir|für sie|euch)",
    r"gerne? helfe (?:ich|wir) (?:ihnen|dir)|ihnen (?:\w+ )?(?:gerne? )?(?:zur verfügung|behilflich|weiterhelfen)",
    (
        r"(?:vielen dank|danke) für (?:ihre|deine) (?:anfrage|nachricht|bestellung|interesse)"
        r"|haben sie (?:noch )?weitere fragen"
    ),
    r"benötige(?:n)? (?:ich|wir) (?:noch )?(?:ihren?|deinen?) |ich habe (?:ihren?|deinen?) \w+ \w+(?:t|en)\b",
    r"con (?:mucho )?gusto (?:le|te) |en qué (?:le )?puedo ayudar|cómo puedo ayudar|gracias por (?:contactar|llamar)",
    (
        r"comment puis-je vous aider|en quoi puis-je|je (?:peux|vais) vous aider|merci (?:de nous avoir"
        r"|pour votre (?:demande|intérêt))"
    ),
    r"come posso aiutar|in cosa posso|posso ajudar|como posso ajudar|hoe kan ik u helpen|waarmee kan ik",
    r"(?:please )?accept our|(?:can|could) we do to (?:keep|help)",
    r"kann ich .{0,30}für sie tun|ich habe (?:ihnen|dir) ",
    rf"{_I}{_ADVERBS} looked (?:into|up|at) your",
)
_WEAK = (
    (
        r"(?:has|have) been (?:successfully |now |already )?(?:resolved|fixed|processed|completed|updated|cancell?ed"
        r"|confirmed|refunded"
        r"|credited|approved|rescheduled|issued)"
    ),
    r"(?:get|come) back to you\b|relevant (?:department|team)|on our (?:end|side)|ready to order",
    rf"(?:so|then|so that)(?: that)? (?:i|we)(?: can|'ll| could| will) {_SERVE}",
    (
        r"(?:slots?|openings?|tables?|rooms?|seats?|appointments?|places?) (?:are |is )?(?:still )?(?:left"
        r"|available|free|open)\b"
    ),
    r"let me know (?:if|whether) (?:it|that|this) (?:work|help|fix|solve)\w*|(?:problem|issue|error) persists",
    r"(?:which|what) (?:\w+ ){1,2}would you (?:like|prefer)",
    (
        r"we (?:have|offer|also have|currently have) (?:it|them|this|openings|several"
        r"|a few|many|both|different|various)"
    ),
    (
        r"please (?:do that|try that|try this) first|(?:could|can) you (?:please )?(?:tell me|describe"
        r"|confirm) the \w+ of your"
    ),
    r"(?:shipped|delivered|dispatched) .{0,30}\bwithin\b|i'm sorry (?:to hear )?(?:you're|you are|that you)",
    (
        r"are you looking for|(?:i|we) should know|(?:you|your \w+) need (?:help|assistance)"
        r"|do you have any (?:allerg"
        r"|prefer)"
    ),
    r"you (?:could|can|may|might want to|may want to|should)(?: also)? try|it sounds like|sent to you\b",
    r"would you prefer|i understand (?:this|that|it) (?:can|must|is)",
    r"please (?:try|reinstall|restart|make|hold) (?!again)",
    r"you(?:'ll| will| should)(?: \w+)? (?:be|see|receive|get) ",
    r"(?:i'll|i will|i can|let me) (?:suggest|recommend|calculate)",
    r"tell me (?:more )?(?:about )?(?:what|how|which|more|when) you",
    r"your (?:taste|level|style|health|budget|stay|trip)\b",
    r"bring (?:it|them|him|her|your \w+) (?:in|along|to us)|don't forget to|remember to|let me know if you need",
    r"(?:corrected|fixed|adjusted|updated|changed) (?:the|your|it)\b(?=.*\b(?:you|your)\b)",
    r"at no (?:extra )?(?:cost|charge)",
    r"(?:i'd|i would|we|we'd|i)(?: strongly| highly)? (?:recommend|suggest|advise|encourage)\b",
    (
        r"you(?:'ll| will| should)(?: then| also| shortly| soon)* (?:receive|get a|be (?:notified|contacted|charged)"
        r"|hear from us)"
    ),
    (
        r"for (?:your safety|security reasons|your convenience|further)|(?:based on|according to) (?:your|what you)"
        r"|rest assured"
    ),
    (
        r"(?:great|good|excellent|lovely|wonderful|nice) (?:question|choice|to hear)|what an? \w+ choice"
        r"|certainly[!,]"
        r"|absolutely!"
    ),
    r"i'm (?:so |very |really )?(?:sorry|glad|happy) (?:to hear|that you|you(?:'re| are)? |about your)|i hear you",
    (
        r"(?:once|when|after|before|as soon as|since|if) you(?:'ve|'d| have| had)? (?!like|want|need|could|can|agree"
        r"|don't|do not|see|ask|prefer|"
        r"would|mind|wish|know|must|look|think|had|have|send|give|tell|get)\w+"
    ),
    (
        r"you(?:'re| are) (?:covered|eligible|entitled|insured|all set|registered|welcome to)|you(?:'ll"
        r"| will) (?:hear"
        r"|find|need|see|be|have)\b"
    ),
    (
        r"your (?:request|inquiry|enquiry|concerns?|complaint|needs|preferences?|situation|convenience|experience"
        r"|issue)\b"
    ),
    (
        r"(?:our |all )?(?:customers|visitors|children|patients|members|guests|students|passengers|tenants|users"
        r"|people)"
        r" (?:can(?!'t)|may|should|must|usually|often|have to|need to|are (?:asked|advised|required|kindly))"
    ),
    (
        r"(?:here is|here's|here are) (?:a|an|the|some|your|how)\b|ready for (?:pick-?up|collection)|free of charge"
        r"|for you\b"
    ),
    (
        r"(?:thanks|thank you) for (?:that|the|this) (?:information|info|details|clarification)"
        r"|what would you (?:like"
        r"|prefer)|suits? you\b"
    ),
    r"let me (?:run|walk|explain|guide|connect|transfer|pull|verify|arrange|take you|put you|assure)|i speciali[sz]e",
    (
        r"please (?:bring|arrive|remember|do not|don't|contact|use|wait|complete|fill|visit|refer|enter|provide"
        r"|submit"
        r"|be)\b"
    ),
    (
        r"(?:have|did) you (?:already |ever )?(?:tried|try|checked|check|restarted|noticed|considered|used)"
        r"|how (?:long"
        r"|often) (?:have|do) you"
    ),
    (
        r"(?:does|would|will) (?:that|this|it|\w+day)(?: \w+){0,3} (?:work|suit|be (?:ok|okay|fine"
        r"|convenient)) (?:for )?you"
    ),
    (
        r"(?:will|to) be (?:\w+ )?(?:delivered|shipped|charged|dispatched|processed|credited|refunded|contacted"
        r"|sent (?:out )?to you)"
    ),
    (
        r"within (?:\w+ )?(?:\w+ )?(?:business|working) days|confirmation (?:e-?mail|will|by)|(?:can|will) (?:see"
        r"|call"
        r"|contact|reach) you\b"
    ),
    (
        r"(?:start|begin) by \w+ing|(?:follow|complete|repeat) (?:these|the following|the) steps|(?:click|tap|press"
        r"|hold|select|enter) (?:on )?the"
    ),
    (
        r"(?:when|where|how) (?:did|do|would|will) you (?:buy|purchase|notice|like|be|want|plan|use)|for (?:security"
        r"|verification)"
    ),
    r"you're (?:very |most )?welcome[!.] .+|no problem(?: at all)?[!,.] .*\b(?:you|your)\b",
    (
        rf"(?:may|can|could) i (?:please )?(?:have|get|ask for|take|know) your|(?:what|which)(?:'s| is"
        rf"| are) your {_DATA}"
    ),
    (
        r"(?:could|can|would|will) you(?: please| kindly)* (?:provide|share|confirm|give|tell|describe)(?: me"
        r"| us)?(?: with)?"
        r" (?:your|the \w+ in more detail|a (?:bit|little) more)"
    ),
    (
        r"(?:when|what time|which day)(?: \w+)? would (?:it|that|you)\b.{0,25}\b(?:convenient|suit you|work for you"
        r"|like|prefer)"
    ),
    r"(?:convenient|suitable|best|work) for you\s*\?|let me know your (?:availability|preference)|do you prefer\b",
    (
        r"would you like (?:to|more|an?|some|the)\b|which (?:one )?(?:may|can|shall) i\b|shall i (?:go ahead|add|book"
        r"|place|proceed)"
    ),
    (
        r"(?:first|next|then),? (?:please )?(?:tell me|check|make sure|try|open)|let me know how (?:that|it) (?:goes"
        r"|went|works)"
    ),
    r"(?:i|we)(?:'ll| will|'d| would)? (?:also |still |just )?need (?:to know|you to|some|a few|more)\b",
    rf"(?:i|we)(?:'ve| have|'ll| will| can)(?:{_ADVERBS}) {_SERVE} (?:you|your)\b",
    r"to (?:process|complete|proceed with|finali[sz]e|look into|help) (?:your|this|the|you)\b",
    (
        r"(?:options|appointments|places|seats|slots|sessions) are (?:still )?(?:available|open)|(?:is"
        r"|are) available (?:for|on|from)"
    ),
    (
        r"(?:happy|glad|pleased|delighted) to (?!hear|pay|wait|see|know)\w+|(?:point|direct|refer) you to"
        r"|may i\b.{0,30}\byou"
    ),
    (
        r"you (?:don't|do not|won't|will not|only|would) need (?:an?|to)\b|you(?:'re| are) (?:all set|good to go"
        r"|covered)"
    ),
)
_EXCLUDED_OWN = word_set(
    "help time patience day evening weekend message mail email answer reply question questions name support service "
    "team "
    "website site page app system shop store advice hotline colleague colleagues kindness effort understanding offer "
    "prices price opening hours office company side end way records file files database"
)
"""Things that a user calls "your" though the agent may do so too."""
_YOUR = re.compile(
    r"\byour (?:own |new |old |current |first |next )*(\w+)(?=$|[.,;:!?)]|\s(?!\w)|\s\w+)", re.IGNORECASE
)
_MY = re.compile(
    r"\b(?:my|our|mein\w*|mon|ma|mes|mi|mis|meu|minha) (?:own |new |old |current |first |next )*(\w+)", re.IGNORECASE
)
_OFFERS = re.compile(r"\b(?:volunteer|donat|help out|apply|application|job|offer|sell)\w*", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'd|i'll|i've|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
_ASKS_AGENT = re.compile(
    r"\b(?:can|could) you (?!tell|share|confirm|provide|describe|give|verify|send (?:me|us|your))\w+", re.IGNORECASE
)
_MINE = re.compile(r"\b(?:my\s+\w|mine\b)", re.IGNORECASE)
_WE = re.compile(r"\b(?:we|our|us|ours)\b", re.IGNORECASE)
_INSTITUTION = re.compile(
    r"\bour\b|\b(?:to|with|contact|let|joining|choosing|tell|leave|visit|join|call) us\b"
    r"|\bwe\b(?!'re|'d|'ve| are| were| was| had| have| need| want| would| got| get| live| can| could| don't| do"
    r"| didn't"
    r"| did| might| may| both| thought| think| know| come| stay| leave| left| arrive| all| just| also| never| always"
    r"| should| must| usually| like| love| took| bought| paid| ordered| booked| went| use| make| pay"
    r"|'ll (?:be|take|pick|come|do|bring|pay|arrive|meet|stay|go|need|leave|try|wait)| will (?:be|take|pick|come"
    r"|bring|pay|arrive|meet|stay|go|need|leave|try|wait))\b",
    re.IGNORECASE,
)
_OWN_MATTER = re.compile(
    r"\bour (?:company|firm|office|house|home|flat|family|kids|children|boss|landlord|neighbou?rs?|dog|cat|car"
    r"|accounting|department|users|staff|employees)\b"
    r"|(?<!let )(?<!tell )(?<!from )\bme\b|\b(?:my|mine|yes|no|yeah|nope)\b"
    r"|\bi\b(?!(?:'ll|'ve| will| can| have \w+ed| understand| see\b| recommend| suggest| advise| offer))"
    r"|\bwe\b(?!(?:'ll| will| recommend| suggest| advise| offer| regret| kindly| provide| wish))",
    re.IGNORECASE,
)
"""Words of somebody who speaks of himself, other than of work for somebody else."""
_SHORT = 7
_LONG = 9


_strong = tuple(compile_pattern(pattern) for pattern in _STRONG)
_weak = tuple(compile_pattern(pattern) for pattern in _WEAK)


class Speakers(NamedTuple):
    """Texts of the two sides of a conversation."""

    own: tuple[str, ...]
    """Texts of the user: brief and earlier messages."""
    other: tuple[str, ...]
    """Messages of the agent."""
    facts: tuple[str, ...] = ()
    """Names of the facts that the user holds."""


def find_reversed_role(message: str, speakers: Speakers) -> str | None:
    """Return the part of a message in which its writer serves the other side; `None` if the roles are in order."""
    text = without_quotations(message)
    weight, found = 0.0, ""
    is_asked = bool(speakers.other) and bool(open_requests(speakers.other[-1]))
    is_offering = any(_OFFERS.search(own) for own in speakers.own)
    for patterns, size in ((_strong, 1.0 if is_offering else 2.0), (_weak, 1.0)):
        for pattern in patterns:
            match = pattern.search(text)
            if match:
                weight += size
                found = found or match[0]
    for thing in _owned_things(text, speakers):
        weight += 1.0
        found = found or f"your {thing}"
    if speakers.other and _INSTITUTION.search(text) and not any(_WE.search(own) for own in speakers.own):
        weight += 1.0
        found = found or "we"
    weight += 1.0 if any(_is_status(text, thing) for thing in _owned_things(text, speakers)) else 0.0
    if is_asked and not _is_own_matter(text):
        weight += 1.0
    weight -= 1.0 if _MINE.search(text) else 0.0
    weight -= 0.5 if _ASKS_AGENT.search(text) else 0.0
    if weight and _is_information(text):
        weight += 0.5
    return " ".join(found.split()) if weight >= REVERSED else None


def _owned_things(text: str, speakers: Speakers) -> list[str]:
    """Return the things of the user that a message calls "your"."""
    own = {match.casefold() for part in speakers.own for match in _MY.findall(plain(part))}
    own |= {word for fact in speakers.facts for word in words(fact.replace("_", " "))}
    asked = {match.casefold() for part in speakers.other for match in _YOUR.findall(plain(part))}
    theirs = {match.casefold() for part in speakers.own for match in _YOUR.findall(plain(part))}
    theirs |= {match.casefold() for part in speakers.other for match in _MY.findall(plain(part))}
    things = {match.casefold() for match in _YOUR.findall(text)}
    return sorted(things & (own | asked) - theirs - _EXCLUDED_OWN)


def _is_status(text: str, thing: str) -> bool:
    """Tell whether a message tells the other side how its own thing is."""
    return (
        re.search(
            rf"\byour (?:\w+ )?{re.escape(thing)} (?:\w+ )?(?:is|are|has|have|will|was|were|can|should)\b",
            text,
            re.IGNORECASE,
        )
        is not None
    )


def _is_own_matter(text: str) -> bool:
    """Tell whether a message may answer a question: it is short, speaks of its writer, or does not tell something."""
    return len(words(text)) < _SHORT or is_declined(text) or _OWN_MATTER.search(text) is not None


def _is_information(text: str) -> bool:
    """Tell whether a message informs at some length, and its writer speaks neither of himself nor asks."""
    first = sentences(text)[:1]
    return (
        bool(first)
        and not is_question(first[0])
        and not _FIRST_PERSON.search(first[0])
        and len(content_words(text)) >= _LONG
    )
